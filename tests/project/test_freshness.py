"""A loaded model and a checked project are never older than their sources, whatever dates say."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ttcodegen
from ttcodegen.cli.rt import main as rt_main
from ttcodegen.cli.ttcodegen import main

pytestmark = pytest.mark.slow

SOURCE = """func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "ttir.constant"() <{value = dense<1.0> : tensor<4xf32>}> : () -> tensor<4xf32>
  %1 = "ttir.add"(%x, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""
LOADED = "import ttcodegen, numpy, sys; print(ttcodegen.load(sys.argv[1])(numpy.zeros(4, 'f'))[0])"


def compile_to(out: Path, text: str) -> None:
    source = out.parent / "adder.mlir"
    source.write_text(text)
    assert main([str(source), "-o", str(out), "-q"]) == 0


def result(out: Path) -> float:
    with ttcodegen.load(out) as model:
        return float(model(np.zeros(4, np.float32))[0])


def test_a_loaded_model_is_that_of_the_sources(
    cpu_backend: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    compile_to(out, SOURCE)
    assert result(out) == 1
    # Compiled again, in the same process and in another one.
    compile_to(out, SOURCE.replace("dense<1.0>", "dense<5.0>"))
    assert result(out) == 5
    compile_to(out, SOURCE.replace('ttir.add"', 'ttir.subtract"'))
    program = [sys.executable, "-c", LOADED, str(out)]
    assert subprocess.run(program, capture_output=True, text=True, check=True).stdout == "-1.0\n"
    # Edited by hand, with the date of the first text.
    file = out / "src" / "adder.cpp"
    before = file.read_text()
    status = file.stat()
    assert "ttnn::subtract(" in before
    file.write_text(before.replace("ttnn::subtract(", "ttnn::multiply("))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert result(out) == 0
    assert rt_main(["run", str(out), "--quiet"]) == 4
    # And put back as it was, as `cp -p` does it.
    file.write_text(before)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert rt_main(["run", str(out), "--quiet"]) == 0
    assert result(out) == -1
    # A library that someone put there.
    shutil.copy(out / "build" / "libadder.so", tmp_path / "old.so")
    compile_to(out, SOURCE)
    assert result(out) == 1
    (out / "build" / "libadder.so").unlink()
    shutil.copy2(tmp_path / "old.so", out / "build" / "libadder.so")
    assert result(out) == 1


def test_a_check_builds_no_older_library_up_to_date(cpu_backend: object, tmp_path: Path) -> None:
    """Checks build the executable only, and leave the library of the model before it."""
    out = tmp_path / "out"
    for value in (1, 5, 7):
        source = tmp_path / "adder.mlir"
        source.write_text(SOURCE.replace("dense<1.0>", f"dense<{value}.0>"))
        assert main([str(source), "-o", str(out), "-q", "--check"]) == 0
        assert result(out) == value
    assert main([str(source), "-o", str(out), "-q", "--check"]) == 0
    built = (out / "build" / "libadder.so").stat().st_mtime_ns
    assert result(out) == 7
    assert (out / "build" / "libadder.so").stat().st_mtime_ns == built


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_loading_again_takes_no_memory(cpu_backend: object, tmp_path: Path) -> None:
    compile_to(tmp_path / "out", SOURCE)
    for _ in range(50):
        result(tmp_path / "out")
    before = _resident()
    for _ in range(1000):
        ttcodegen.load(tmp_path / "out").close()
    assert _resident() - before < 1 << 20
