"""Recovery of a project after its writer was killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.project.conftest import write
from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.project.staging import PREFIX, recover, staging
from ttcodegen.project.writer import refuse_unrelated_folder

TEXT = """func.func @forward(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "ttir.constant"() <{value = dense<[[1.5, 2.5, 3.5], [4.5, 5.5, 6.5]]> : tensor<2x3xf32>}>
      : () -> tensor<2x3xf32>
  %1 = "ttir.multiply"(%x, %0) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
"""


@pytest.fixture(scope="module")
def other() -> CompiledModule:
    """Another module of the same name, which other files make up."""
    return compile_module(Source("tiny.mlir", TEXT), CompileOptions("tiny"))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def write_killed(compiled: CompiledModule, out: Path, rename: int) -> bool:
    """Writes in a process that dies before it renames for that time; whether it came so far."""
    child = os.fork()
    if child == 0:
        count = 0
        original = Path.rename

        def counted(path: Path, target: Path) -> Path:
            nonlocal count
            if count == rename:
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1
            return original(path, target)

        Path.rename = counted  # type: ignore[method-assign, assignment]
        try:
            write(compiled, out)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_a_project_is_as_it_was_wherever_the_writing_was_cut_off(
    compiled: CompiledModule, other: CompiledModule, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    write(compiled, out)
    before = contents(out)
    rename = 0
    while write_killed(other, out, rename):
        refuse_unrelated_folder(out, force=False)
        after = contents(out)
        assert before.items() <= after.items()
        assert not [name for name in os.listdir(out) if name.startswith(PREFIX)]
        rename += 1
    assert rename > 5
    assert b"multiply" in (out / "src" / "tiny.cpp").read_bytes()


def test_what_was_begun_beside_a_new_project_goes(compiled: CompiledModule, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert write_killed(compiled, out, 0)
    assert [name.startswith(PREFIX) for name in os.listdir(tmp_path)] == [True]
    write(compiled, out)
    assert os.listdir(tmp_path) == ["out"]


def test_the_folder_of_a_living_process_stays(compiled: CompiledModule, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(compiled, out)
    with staging(out) as place:
        recover(out)
        assert place.folder.is_dir()
    unrelated = out / f"{PREFIX}mine"
    unrelated.mkdir()
    write(compiled, out)
    assert unrelated.is_dir()


def test_edits_are_reported_after_a_writing_that_was_cut_off(
    compiled: CompiledModule, other: CompiledModule, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    write(compiled, out)
    assert write_killed(other, out, 6)
    recover(out)
    (out / "src" / "tiny.cpp").write_text("edited")
    with pytest.raises(CompileError, match="were edited"):
        refuse_unrelated_folder(out, force=False, keep_edits="fail")
