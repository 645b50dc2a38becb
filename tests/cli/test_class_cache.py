"""Methods that `dataclasses` generated are kept between runs, and never make a run fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ttcodegen.cli.class_cache import ClassCache

PROGRAM = """
import sys
import ttcodegen.cli
from dataclasses import dataclass

@dataclass(frozen=True, order=True)
class Point:
    x: int
    y: int = 2

assert Point(1) == Point(1, 2) < Point(2) and hash(Point(1)) == hash(Point(1))
print(repr(Point(1)), end="")
"""


def run(cache: Path, *options: str) -> str:
    done = subprocess.run(
        [sys.executable, *options, "-c", PROGRAM],
        env={"TTCODEGEN_CACHE": str(cache), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def test_second_run_takes_the_methods_from_the_file(tmp_path: Path) -> None:
    assert run(tmp_path) == "Point(x=1, y=2)"
    (file,) = (tmp_path / "ttcodegen").iterdir()
    written = file.stat()
    assert run(tmp_path) == "Point(x=1, y=2)"
    assert file.stat().st_mtime_ns == written.st_mtime_ns


def test_nothing_is_written_if_python_writes_no_bytecode(tmp_path: Path) -> None:
    assert run(tmp_path, "-B") == "Point(x=1, y=2)"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["cut", "changed", "empty"])
def test_damaged_file_costs_only_the_time(tmp_path: Path, damage: str) -> None:
    run(tmp_path)
    (file,) = (tmp_path / "ttcodegen").iterdir()
    data = file.read_bytes()
    middle = len(data) // 2
    damaged = {
        "cut": data[:middle],
        "changed": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
        "empty": b"",
    }
    file.write_bytes(damaged[damage])
    assert run(tmp_path) == "Point(x=1, y=2)"
    assert file.read_bytes() == data


def test_folder_that_cannot_be_written_costs_only_the_time(tmp_path: Path) -> None:
    tmp_path.joinpath("ttcodegen").write_text("a file")
    assert run(tmp_path) == "Point(x=1, y=2)"


def test_code_is_kept_by_its_text(tmp_path: Path) -> None:
    first: dict[str, Any] = {}
    cache = ClassCache(tmp_path / "classes")
    cache.execute("def f(): return x", {"x": 1}, first)
    cache.save()
    second: dict[str, Any] = {}
    ClassCache(tmp_path / "classes").execute("def f(): return x", {"x": 2}, second)
    assert (first["f"](), second["f"]()) == (1, 2)
