"""The C++ tests of the CPU backend, under AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from scripts.kernel_check_toolchain import ToolchainError, device_headers
from scripts.link_check import LinkCheckError
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import Toolchain
from ttcodegen.systems.releases import RELEASES

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "standalone-sanitized"
"""Kept from one run to the next: only what changed is compiled again."""


def run(*command: str | Path, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-10000:]


def ttnn_operations() -> dict[str, str]:
    """Environment variable with the path of a released wheel's kernels, if any: of the earliest
    release, for later ones are written with dataflow buffers, which our own kernels do without."""
    try:
        device = device_headers(ROOT / "build" / "wheels", release=next(iter(RELEASES)))
    except (LinkCheckError, ToolchainError):
        return {}
    return {"TTNN_OPERATIONS": str(device / "ttnn" / "cpp" / "ttnn" / "operations")}


@pytest.mark.slow
def test_the_tests_of_the_cpu_backend_pass_under_sanitizers(toolchain: Toolchain) -> None:
    run(
        toolchain.cmake,
        *("-G", "Ninja", "-S", ROOT / "standalone", "-B", BUILD),
        f"-DCMAKE_MAKE_PROGRAM={toolchain.ninja}",
        f"-DCMAKE_CXX_COMPILER={toolchain.compiler}",
        # What the sanitizers add takes three times as long to compile at the usual -O3, and a
        # quarter longer at -O1.
        "-DCMAKE_BUILD_TYPE=Debug",
        # With sanitizers GCC 12 sees uninitialized variables where there are none, in <regex>.
        "-DCMAKE_CXX_FLAGS_DEBUG=-Og -Wno-maybe-uninitialized",
        "-DTTCODEGEN_CPU_TESTS=ON",
        "-DTTCODEGEN_CPU_SANITIZE=ON",
    )
    run(toolchain.ninja, "-C", BUILD)
    ctest = Path(toolchain.cmake).with_name("ctest")
    run(
        *(ctest, "--test-dir", BUILD, "--no-tests=error", "--output-on-failure", "-j", "2"),
        environment=ttnn_operations(),
    )


@pytest.mark.slow
def test_stores_of_kernels_are_bounded_without_sanitizers(
    cpu_backend: CPUBackend, toolchain: Toolchain, tmp_path: Path
) -> None:
    """As users' projects run: what bounds the stores there is not what the sanitizers do."""
    [library] = cpu_backend.folder.rglob("libttcodegen_cpu.a")
    tests = ROOT / "standalone" / "tests"
    program = tmp_path / "device_stores_test"
    run(
        *(toolchain.compiler, "-std=c++20", tests / "device_stores_test.cpp"),
        *("-I", tests, "-I", cpu_backend.folder / "include", "-I", ROOT / "standalone" / "src"),
        *(library, "-pthread", "-ldl", "-o", program),
    )
    run(program)
