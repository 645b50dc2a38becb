"""Replays measured calls of ttnn 0.70.1 against the CPU backend."""

from __future__ import annotations

import lzma
import subprocess
from pathlib import Path

import pytest

from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import Toolchain

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "rules"
"""Kept from one run to the next: only what changed is compiled again."""


CALLS = Path(__file__).parent / "measured" / "ttnn_calls.tsv.xz"
"""The measured calls; docs/library-rules.md says how they are written."""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """The table of measured calls."""
    table = tmp_path / "ttnn_calls.tsv"
    table.write_bytes(lzma.decompress(CALLS.read_bytes()))
    return table


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-20000:]
    return done.stdout


@pytest.mark.slow
def test_the_cpu_backend_follows_the_measured_rules(
    toolchain: Toolchain, cpu_backend: CPUBackend, rules: Path
) -> None:
    run(
        toolchain.cmake,
        *("-G", "Ninja", "-S", ROOT / "standalone" / "tests" / "rules", "-B", BUILD),
        f"-DCMAKE_MAKE_PROGRAM={toolchain.ninja}",
        f"-DCMAKE_CXX_COMPILER={toolchain.compiler}",
        f"-DCMAKE_PREFIX_PATH={cpu_backend.folder}",
    )
    run(toolchain.ninja, "-C", BUILD)
    print(run(BUILD / "rules_replay", rules, ROOT / "standalone" / "differences.tsv"))
