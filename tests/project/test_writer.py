"""out/ is written as a whole or stays as it was."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.project.conftest import write
from ttcodegen.compilation import CompiledModule
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.project.writer import save_array


def _contents(folder: Path) -> dict[str, bytes | None]:
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None
        for p in sorted(folder.rglob("*"))
    }


def test_missing_parents_are_made(compiled: CompiledModule, tmp_path: Path) -> None:
    out = tmp_path / "a" / "b" / "out"
    write(compiled, out)
    assert (out / "src" / "tiny.cpp").is_file()
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert [p.name for p in out.parent.iterdir()] == ["out"]


def test_an_empty_folder_is_taken(compiled: CompiledModule, tmp_path: Path) -> None:
    write(compiled, tmp_path)
    assert (tmp_path / "manifest.json").is_file()


def test_a_file_is_refused(compiled: CompiledModule, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("mine")
    with pytest.raises(CompileError, match="there is a file of that name"):
        write(compiled, out, force=True)
    assert out.read_text() == "mine"


def test_a_foreign_folder_is_refused(compiled: CompiledModule, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "tiny.cpp").write_text("mine")
    before = _contents(tmp_path)
    with pytest.raises(CompileError, match="ttcodegen did not write it"):
        write(compiled, tmp_path)
    assert _contents(tmp_path) == before


def test_force_writes_between_files_of_others(compiled: CompiledModule, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "tiny.cpp").write_text("mine")
    (tmp_path / "src" / "other.cpp").write_text("mine")
    write(compiled, tmp_path, force=True)
    assert (tmp_path / "src" / "tiny.cpp").read_text() == compiled.files["src/tiny.cpp"]
    assert (tmp_path / "src" / "other.cpp").read_text() == "mine"


def test_edited_files_are_kept(compiled: CompiledModule, project: Path) -> None:
    source = project / "src" / "tiny.cpp"
    source.write_text("edited")
    before = _contents(project)
    write(compiled, project)
    assert _contents(project) == before
    write(compiled, project, force=True)
    assert source.read_text() == compiled.files["src/tiny.cpp"]


def test_writing_again_changes_nothing(compiled: CompiledModule, project: Path) -> None:
    (project / "build").mkdir()
    (project / "build" / "tiny.o").write_text("built")
    (project / "data" / "forward.layer_weight.npy").write_text("trained")
    (project / "check.json").write_text("of before")
    times = {p: p.stat().st_mtime_ns for p in project.rglob("*") if p.is_file()}
    before = _contents(project)
    write(compiled, project)
    del before["check.json"]
    assert _contents(project) == before
    assert {p: p.stat().st_mtime_ns for p in times if p.name != "check.json"} == {
        p: t for p, t in times.items() if p.name != "check.json"
    }


def test_deleted_files_come_back(compiled: CompiledModule, project: Path) -> None:
    before = _contents(project)
    (project / "src" / "tiny.cpp").unlink()
    (project / "data" / "offset.npy").unlink()
    write(compiled, project)
    assert _contents(project) == before


def test_files_of_another_model_go(compiled: CompiledModule, project: Path) -> None:
    stale = project / "src" / "old.cpp"
    stale.write_text("")
    manifest = project / "manifest.json"
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    row = f'{{"path": "src/old.cpp", "sha256": "{empty}"}}, '
    manifest.write_text(manifest.read_text().replace('"files": [', f'"files": [{row}'))
    write(compiled, project)
    assert not stale.exists()


def test_a_link_is_followed(compiled: CompiledModule, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "out"
    link.symlink_to("real")
    write(compiled, link)
    assert link.is_symlink()
    assert (tmp_path / "real" / "manifest.json").is_file()


def _failing(function: Callable[..., object], calls: int) -> Callable[..., object]:
    """`function`, which from the given call on finds the disk full."""
    count = 0

    def replacement(*arguments: object, **options: object) -> object:
        nonlocal count
        count += 1
        if count > calls:
            raise OSError(errno.ENOSPC, "No space left on device")
        return function(*arguments, **options)

    return replacement


@pytest.mark.parametrize("method", ["write_bytes", "mkdir", "write_text"])
def test_a_full_disk_leaves_nothing(
    compiled: CompiledModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    calls = 3 if method != "write_text" else 0
    monkeypatch.setattr(Path, method, _failing(getattr(Path, method), calls))
    with pytest.raises(CompileError, match="No space left"):
        write(compiled, tmp_path / "a" / "out")
    assert _contents(tmp_path) == {}


@pytest.mark.parametrize("calls", range(15))
def test_a_failing_move_is_undone(
    compiled: CompiledModule, project: Path, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    """All moves to and fro are the same call: those that undo the others must succeed again."""
    for path in [*project.glob("src/*"), project / "CMakeLists.txt"]:
        path.write_text("edited")
    (project / "support" / "files.cpp").unlink()
    before = _contents(project)
    rename = Path.rename
    count = 0

    def failing(path: Path, target: Path) -> Path:
        nonlocal count
        count += 1
        if count == calls + 1:
            raise OSError(errno.EIO, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(CompileError, match="Input/output error"):
        write(compiled, project, force=True)
    assert _contents(project) == before


def test_an_unwritable_folder_is_reported(
    compiled: CompiledModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> str:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    with pytest.raises(CompileError, match="Read-only file system"):
        write(compiled, tmp_path / "out")
    assert _contents(tmp_path) == {}


def test_bfloat16_is_saved_as_float32(tmp_path: Path) -> None:
    values = np.array([1.5, -2.25], ml_dtypes.bfloat16)
    save_array(tmp_path / "a.npy", values)
    loaded = np.load(tmp_path / "a.npy")
    assert loaded.dtype == np.float32
    assert loaded.tolist() == [1.5, -2.25]
