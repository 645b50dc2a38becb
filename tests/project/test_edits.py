"""Preservation of a person's edits in out/ by the next run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.project.conftest import SOURCE, write
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.project import edits
from ttcodegen.project.edits import PRISTINE, edits_patch, read_pristine
from ttcodegen.project.writer import write_project

BEFORE = "".join(f"line {number}\n" for number in range(20))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def described(compiled: CompiledModule):
    return compiled.description


@pytest.fixture
def out(described, tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    write_project(described, folder, {"src/a.cpp": BEFORE, "src/b.cpp": BEFORE, "model.ttnn": b"1"})
    return folder


def edit(out: Path, path: str, old: str, new: str) -> None:
    file = out / path
    file.write_text(file.read_text().replace(old, new))


def test_the_pristine_texts_are_kept(out: Path) -> None:
    assert read_pristine(out) == {"src/a.cpp": BEFORE, "src/b.cpp": BEFORE}


def test_edits_and_new_text_are_merged(described, out: Path) -> None:
    edit(out, "src/a.cpp", "line 3\n", "line 3, tuned\n")
    new = BEFORE.replace("line 15\n", "line 15, generated\n")
    assert write_project(described, out, {"src/a.cpp": new, "src/b.cpp": new}) == []
    merged = (out / "src/a.cpp").read_text()
    assert merged == new.replace("line 3\n", "line 3, tuned\n")
    assert (out / "src/b.cpp").read_text() == new
    assert (read_pristine(out) or {})["src/a.cpp"] == new


def test_edits_survive_several_runs(described, out: Path) -> None:
    edit(out, "src/a.cpp", "line 3\n", "line 3, tuned\n")
    for number in (9, 12, 15):
        new = BEFORE.replace(f"line {number}\n", f"line {number}, generated\n")
        assert write_project(described, out, {"src/a.cpp": new}) == []
        assert (out / "src/a.cpp").read_text() == new.replace("line 3\n", "line 3, tuned\n")


def test_conflicts_stand_in_their_file_only(described, out: Path) -> None:
    edit(out, "src/a.cpp", "line 3\n", "line 3, tuned\n")
    new = BEFORE.replace("line 3\n", "line 3, generated\n")
    (conflict,) = write_project(described, out, {"src/a.cpp": new, "src/b.cpp": new})
    assert (conflict.path, conflict.reason) == ("src/a.cpp", "has 1 conflict")
    text = (out / "src/a.cpp").read_text()
    for part in ("<<<<<<< edited\nline 3, tuned\n", "=======\nline 3, generated\n>>>>>>> gen"):
        assert part in text
    assert (out / "src/b.cpp").read_text() == new


def test_markers_that_nobody_resolved_are_reported_again(described, out: Path) -> None:
    edit(out, "src/a.cpp", "line 3\n", "line 3, tuned\n")
    new = BEFORE.replace("line 3\n", "line 3, generated\n")
    write_project(described, out, {"src/a.cpp": new})
    (conflict,) = write_project(described, out, {"src/a.cpp": new})
    assert conflict.reason == "still has markers of conflicts"
    (out / "src/a.cpp").write_text(new.replace("line 3, generated", "line 3, both"))
    assert write_project(described, out, {"src/a.cpp": new}) == []
    assert "line 3, both" in (out / "src/a.cpp").read_text()


def test_an_edited_file_that_is_not_generated_any_more_stays(described, out: Path) -> None:
    edit(out, "src/a.cpp", "line 3\n", "line 3, tuned\n")
    (conflict,) = write_project(described, out, {"src/c.cpp": BEFORE})
    assert conflict.path == "src/a.cpp"
    assert "tuned" in (out / "src/a.cpp").read_text()
    assert not (out / "src/b.cpp").exists()


def test_trained_constants_stay(compiled: CompiledModule, project: Path) -> None:
    np.save(project / "data" / "offset.npy", trained := np.full((2, 3), 7, np.float32))
    write(compiled, project)
    assert np.array_equal(np.load(project / "data" / "offset.npy"), trained)


def test_edits_that_cannot_be_merged_change_nothing(
    described, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(out, "src/a.cpp", "line 3\n", "line 3, tuned\n")
    before = contents(out)
    monkeypatch.setenv("PATH", "")
    new = BEFORE.replace("line 9\n", "")
    with pytest.raises(CompileError, match="git does not run"):
        write_project(described, out, {"src/a.cpp": new, "src/b.cpp": new})
    assert contents(out) == before
    write_project(described, out, {"src/a.cpp": new}, force=True)
    assert (out / "src/a.cpp").read_text() == new


def test_edits_can_be_refused(described, out: Path) -> None:
    edit(out, "src/a.cpp", "line 3\n", "line 3, tuned\n")
    before = contents(out)
    with pytest.raises(CompileError, match=r"edited since .*: src/a.cpp"):
        write_project(described, out, {"src/a.cpp": "", "src/b.cpp": ""}, keep_edits="fail")
    assert contents(out) == before


def test_a_project_without_pristine_texts_is_refused(described, out: Path) -> None:
    out.joinpath(PRISTINE).unlink()
    edit(out, "src/a.cpp", "line 3\n", "line 3, tuned\n")
    with pytest.raises(CompileError, match="edited since"):
        write_project(described, out, {"src/a.cpp": ""})


def test_the_patch_of_the_edits_applies_to_another_project(
    compiled: CompiledModule, project: Path, tmp_path: Path
) -> None:
    edit(project, "src/tiny.cpp", "\n\n", "\n// tuned\n\n")
    project.joinpath("README.md").write_text("no line feed at the end")
    project.joinpath("CMakePresets.json").unlink()
    patch = "".join(edits_patch(project))
    other = tmp_path / "other"
    write(compiled, other)
    subprocess.run(["git", "apply", "-"], cwd=other, input=patch.encode(), check=True)
    for path in ("src/tiny.cpp", "README.md"):
        assert (other / path).read_bytes() == (project / path).read_bytes()
    assert not (other / "CMakePresets.json").exists()


def test_the_command_line_merges_and_tells_conflicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = tmp_path / "tiny.mlir", tmp_path / "out"
    model.write_text(SOURCE)
    command = [str(model), "-o", str(out), "--no-format"]
    assert main(command) == 0
    source = out / "src" / "tiny.cpp"
    generated = source.read_text()
    source.write_text(generated.replace("ttnn::Shape({2, 3})", "ttnn::Shape({3, 2})"))
    assert main(["--edits", str(out)]) == 0
    assert "+++ b/src/tiny.cpp" in capsys.readouterr().out
    assert main([*command, "--keep-edits=fail"]) == 1
    assert main(command) == 0
    assert "ttnn::Shape({3, 2})" in source.read_text()
    source.write_text("mine\n")
    model.write_text(SOURCE.replace("layer", "head"))
    assert main(command) == 5
    assert "src/tiny.cpp has 1 conflict" in capsys.readouterr().err
    assert main([*command, "--force"]) == 0
    expected = compile_module(Source("", model.read_text()), CompileOptions("tiny"))
    assert source.read_text() == expected.files["src/tiny.cpp"]


@pytest.mark.parametrize("kind", ["pipe", "device", "bomb", "folder"])
def test_an_archive_that_is_no_file_or_unpacks_to_too_much_is_none(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edits, "_MOST_UNPACKED", 1000)
    for name in (edits.PRISTINE, edits.LINES):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "device":
            path.symlink_to("/dev/zero")
        elif kind == "folder":
            path.mkdir()
        else:
            path.write_bytes(edits.packed({"a": "b" * 2000}))
    assert edits.read_pristine(tmp_path) is None
    assert edits.read_lines(tmp_path) == []
