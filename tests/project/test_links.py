"""Nothing is written or removed through links in the folder of a project."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.project.conftest import write
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompiledModule
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.project.building import build_project
from ttcodegen.project.staging import PREFIX, recover
from ttcodegen.project.toolchain import Toolchain


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    return folder


@pytest.fixture
def out(compiled: CompiledModule, tmp_path: Path) -> Path:
    write(compiled, tmp_path / "out")
    return tmp_path / "out"


def test_a_row_of_the_manifest_removes_nothing_elsewhere(
    compiled: CompiledModule, out: Path, elsewhere: Path
) -> None:
    (out / "link").symlink_to(elsewhere)
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["files"].append({"path": "link/notes.txt", "sha256": "0" * 64})
    (out / "manifest.json").write_text(json.dumps(manifest))
    before = (out / "src" / "tiny.cpp").read_text()
    with pytest.raises(CompileError, match=r"'.*out/link' is a link: nothing is written"):
        write(compiled, out, force=True)
    assert (elsewhere / "notes.txt").read_text() == "mine"
    assert (out / "src" / "tiny.cpp").read_text() == before


def test_a_folder_that_is_a_link_is_not_written_through(
    compiled: CompiledModule, out: Path, elsewhere: Path
) -> None:
    for path in (out / "src").iterdir():
        path.unlink()
    (out / "src").rmdir()
    (out / "src").symlink_to(elsewhere)
    with pytest.raises(CompileError, match=r"'.*out/src' is a link"):
        write(compiled, out, force=True)
    assert [path.name for path in elsewhere.iterdir()] == ["notes.txt"]


def test_what_a_writing_left_is_not_put_back_from_elsewhere(out: Path, elsewhere: Path) -> None:
    for name in ("a", "b"):
        left = out / f"{PREFIX}{name}"
        left.mkdir()
        (left / "lock").write_text("")
    (out / f"{PREFIX}a" / "replaced").symlink_to(elsewhere)
    (out / f"{PREFIX}b" / "replaced" / "link").mkdir(parents=True)
    (out / f"{PREFIX}b" / "replaced" / "link" / "notes.txt").write_text("theirs")
    (out / "link").symlink_to(elsewhere)
    (out / f"{PREFIX}c").symlink_to(elsewhere)
    with pytest.raises(CompileError, match="is a link"):
        recover(out)
    assert (elsewhere / "notes.txt").read_text() == "mine"
    assert [path.name for path in elsewhere.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("link", ["build", "build/ttcodegen.log", "build/CMakeFiles"])
def test_a_build_stays_in_the_project(
    out: Path, elsewhere: Path, toolchain: Toolchain, link: str
) -> None:
    (out / link).parent.mkdir(exist_ok=True)
    target = elsewhere if "." not in link else elsewhere / "notes.txt"
    (out / link).symlink_to(target)
    with pytest.raises(CompileError, match="is a link"):
        build_project(out, "tiny", toolchain, "so")
    assert (elsewhere / "notes.txt").read_text() == "mine"
    assert os.listdir(elsewhere) == ["notes.txt"]


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a|b", "a\nb", "a;b", "a\x1bb"])
def test_paths_that_cmake_does_not_take(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "m.mlir"
    source.write_text("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {return %x:tensor<4xf32>}")
    out = tmp_path / name
    assert main([str(source), "-o", str(out), "--build"]) == 3
    message = capsys.readouterr().err
    assert "cannot be built: CMake cannot take" in message
    assert "\x1b" not in message
    assert not out.exists()
    assert main([str(source), "-o", str(out), "-q"]) == 0
