"""Compares what is written with the files of a folder, or writes these anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent

Compare = Callable[[str, Mapping[str, str]], None]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Compare:
    """Asserts that files have the text of those in the folder of that name, and that no others are
    there. With --update-golden the folder is written: read its diff before you commit it."""

    def compare(name: str, files: Mapping[str, str]) -> None:
        folder = FOLDER / name
        if request.config.getoption("--update-golden"):
            _write(folder, files)
        known = {
            path.relative_to(folder).as_posix(): path.read_text("utf-8")
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        assert sorted(files) == sorted(known), "run pytest tests/golden --update-golden"
        for path, text in files.items():
            assert text == known[path], f"{name}/{path}: pytest tests/golden --update-golden"

    return compare


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for path in folder.rglob("*"):
        if path.is_file() and path.relative_to(folder).as_posix() not in files:
            path.unlink()
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
