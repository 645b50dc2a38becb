"""Exit of the executable when kernels cannot be built."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ttcodegen.cli.ttcodegen import main
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import Toolchain

SOURCE = """
func.func @first(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = "ttir.exp"(%x) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
func.func @second(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = "ttir.multiply"(%x, %x) : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
"""

# Stands for the threads and devices of the library, which do not survive being torn down once
# building a kernel has failed.
CRASHING_TEARDOWN = """
#include <cstdio>
#include <cstdlib>

namespace {

struct Library {
    ~Library() {
        std::fputs("torn down\\n", stderr);
        std::abort();
    }
} library;

}  // namespace
"""


@pytest.mark.slow
def test_no_destructor_runs_after_kernels_could_not_be_built(
    cpu_backend: CPUBackend, toolchain: Toolchain, tmp_path: Path
) -> None:
    source, out = tmp_path / "two.mlir", tmp_path / "out"
    source.write_text(SOURCE)
    assert main([str(source), "-o", str(out), "--target", "ttmetal", "-q"]) == 0
    with (out / "src" / "two.cpp").open("a") as file:
        file.write(CRASHING_TEARDOWN)
    build = out / "build"
    for command in (
        [toolchain.cmake, "-G", "Ninja", "-S", out, "-B", build,
         f"-DCMAKE_MAKE_PROGRAM={toolchain.ninja}",
         f"-DCMAKE_CXX_COMPILER={toolchain.compiler}",
         f"-DTTCODEGEN_CPU_DIR={cpu_backend.folder}"],
        [toolchain.cmake, "--build", build, "--target", "two_main"],
    ):  # fmt: skip
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)

    def run(kernels: Path) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "TTCODEGEN_KERNELS": str(kernels)}
        return subprocess.run(
            [str(build / "two_main")], env=environment, capture_output=True, text=True
        )

    intact = run(out / "kernels")
    assert "torn down" in intact.stderr
    assert intact.returncode < 0

    wrong = tmp_path / "kernels"
    shutil.copytree(out / "kernels", wrong)
    (wrong / "compute_multiply.cpp").write_text("void kernel_main() { nothing_that_exists(); }\n")
    failed = run(wrong)
    assert failed.returncode == 3
    assert "does not compile" in failed.stderr
    assert "nothing_that_exists" in failed.stderr
    assert "torn down" not in failed.stderr
    # What was printed of the first function is not lost.
    assert "first" in failed.stdout
