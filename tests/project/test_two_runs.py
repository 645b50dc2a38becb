"""Two runs in one folder: the second waits for the first, and neither is torn."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ttcodegen.cli.ttcodegen import main
from ttcodegen.foundation import messages
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.project import building
from ttcodegen.project.edits import edited_files
from ttcodegen.project.staging import ProjectLock, locked_project

MODEL = """func.func @f(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {{
  %0 = "ttir.{op}"(%x) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}}
"""
HOLDER = """
import sys
from pathlib import Path
from ttcodegen.foundation import messages
from ttcodegen.project.staging import ProjectLock, locked_project
with locked_project(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.mlir"
    path.write_text(MODEL.format(op="relu"))
    return path


def piped(*command: str | Path) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, *map(str, command)], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )


@pytest.mark.parametrize("exists", [True, False])
def test_a_second_run_waits_for_the_first(model: Path, exists: bool) -> None:
    out = model.parent / "out"
    if exists:
        assert main([str(model), "-o", str(out), "-q"]) == 0
        model.write_text(MODEL.format(op="exp"))
    with piped("-c", HOLDER, out) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        with piped("-m", "ttcodegen", model, "-o", out) as second:
            assert second.stderr is not None
            line = second.stderr.readline()
            assert line == f"ttcodegen: another run is at work in '{out}'; waiting for it\n"
            assert out.exists() == exists
            assert not exists or "ttnn::exp(" not in (out / "src" / "m.cpp").read_text()
            first.communicate("\n")
            assert "wrote" in second.communicate()[1]
            assert second.returncode == 0
    assert edited_files(out) == []
    assert ("ttnn::exp(" if exists else "ttnn::relu(") in (out / "src" / "m.cpp").read_text()


def test_runs_that_begin_together_leave_one_whole_project(model: Path) -> None:
    out = model.parent / "out"
    models = [model.parent / name / "m.mlir" for name in ("a", "b", "c")]
    for path, op in zip(models, ("relu", "exp", "abs"), strict=True):
        path.parent.mkdir()
        path.write_text(MODEL.format(op=op))
    runs = [piped("-m", "ttcodegen", path, "-o", out, "-q") for path in models]
    for run in runs:
        assert run.communicate() == ("", "")
        assert run.returncode == 0
    assert edited_files(out) == []
    assert [name for name in os.listdir(model.parent) if name.startswith(".ttcodegen-")] == []


def test_a_thread_that_has_the_lock_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with locked_project(out), locked_project(out) as lock:
        assert lock.out == out
    with locked_project(out):
        pass


def test_a_run_says_once_that_it_waits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder above is waited for first, then the project that was made in it."""
    out, project = tmp_path / "out", tmp_path / "project"
    project.mkdir()
    monkeypatch.setattr(messages, "_level", messages.Level.INFO)
    first, second = ProjectLock(out), ProjectLock(out)
    first.take()
    waiting = threading.Thread(target=second.take)
    waiting.start()
    while not second.is_told:
        time.sleep(0.01)
    first.follow(project)
    time.sleep(0.2)
    first.release()
    waiting.join()
    second.release()
    assert capsys.readouterr().err.count("another run is at work") == 1


def test_builds_with_tt_metal_in_one_folder_wait_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []

    def step(*_: object, **__: object) -> int:
        steps.append("begins")
        time.sleep(0.2)
        steps.append("ends")
        return 0

    monkeypatch.setattr(building, "run_step", step)
    monkeypatch.setattr(building, "run_ninja", lambda *_, **__: 0)
    builds = [
        threading.Thread(target=building.build_with_tt_metal, args=(tmp_path, "m"))
        for _ in range(2)
    ]
    for build in builds:
        build.start()
    for build in builds:
        build.join()
    assert steps == ["begins", "ends"] * 2


def test_a_build_with_tt_metal_does_not_follow_links_out_of_the_project(tmp_path: Path) -> None:
    project, other = tmp_path / "project", tmp_path / "other"
    project.mkdir()
    other.mkdir()
    project.joinpath(building.TT_METAL_FOLDER).symlink_to(other)
    with pytest.raises(CompileError, match="link"):
        building.build_with_tt_metal(project, "m")
    assert not list(other.iterdir())
