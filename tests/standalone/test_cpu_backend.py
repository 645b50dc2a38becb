"""The C++ tests of the CPU backend, under AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ttcodegen.project.toolchain import Toolchain

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "standalone-sanitized"
"""Kept from one run to the next: only what changed is compiled again."""


def run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-10000:]


@pytest.mark.slow
def test_the_tests_of_the_cpu_backend_pass_under_sanitizers(toolchain: Toolchain) -> None:
    run(
        toolchain.cmake,
        *("-G", "Ninja", "-S", ROOT / "standalone", "-B", BUILD),
        f"-DCMAKE_MAKE_PROGRAM={toolchain.ninja}",
        f"-DCMAKE_CXX_COMPILER={toolchain.compiler}",
        # What the sanitizers add takes three times as long to compile at the usual -O3.
        "-DCMAKE_BUILD_TYPE=Debug",
        # With sanitizers GCC 12 sees uninitialized variables where there are none, in <regex>.
        "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -Wno-maybe-uninitialized",
        "-DTTCODEGEN_CPU_TESTS=ON",
        "-DTTCODEGEN_CPU_SANITIZE=ON",
    )
    run(toolchain.ninja, "-C", BUILD)
    ctest = Path(toolchain.cmake).with_name("ctest")
    run(ctest, "--test-dir", BUILD, "--output-on-failure", "-j", "2")
