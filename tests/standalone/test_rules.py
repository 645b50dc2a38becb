"""Replays measured calls of ttnn 0.70.1 against the CPU backend.

Of the calls on sharded tensors a selection is part of the project; where the whole table is
beside it, or $TTCODEGEN_SHARDED_RULES names it, that is replayed.
"""

from __future__ import annotations

import lzma
import os
import subprocess
from pathlib import Path

import pytest

from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import Toolchain

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "rules"
"""Kept from one run to the next: only what changed is compiled again."""


MEASURED = Path(__file__).parent / "measured"
CALLS = MEASURED / "ttnn_calls.tsv.xz"
"""The measured calls; docs/library-rules.md says how they are written."""
SHARDED_CALLS = MEASURED / "ttnn_sharded_calls.tsv.xz"
"""Some of those on sharded tensors and with program configurations."""
WHOLE_TABLE = Path(
    os.environ.get(
        "TTCODEGEN_SHARDED_RULES",
        ROOT.parent / "shared" / "tt-metal-api" / "rules-sharded-0.70.1.tsv",
    )
)
STANDALONE = ROOT / "standalone"


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-20000:]
    return done.stdout


@pytest.fixture(scope="module")
def replay(toolchain: Toolchain, cpu_backend: CPUBackend) -> Path:
    """The program that replays a table."""
    run(
        toolchain.cmake,
        *("-G", "Ninja", "-S", STANDALONE / "tests" / "rules", "-B", BUILD),
        f"-DCMAKE_MAKE_PROGRAM={toolchain.ninja}",
        f"-DCMAKE_CXX_COMPILER={toolchain.compiler}",
        # CMake would keep the backend that a kept folder found first.
        f"-DTTCodegenCPU_DIR={cpu_backend.folder / 'lib' / 'cmake' / 'TTCodegenCPU'}",
    )
    run(toolchain.ninja, "-C", BUILD)
    return BUILD / "rules_replay"


def unpacked(table: Path, folder: Path) -> Path:
    path = folder / table.stem
    path.write_bytes(lzma.decompress(table.read_bytes()))
    return path


@pytest.mark.slow
def test_the_cpu_backend_follows_the_measured_rules(replay: Path, tmp_path: Path) -> None:
    print(run(replay, unpacked(CALLS, tmp_path), STANDALONE / "differences.tsv"))


@pytest.mark.slow
def test_a_selection_of_sharded_calls_is_followed(replay: Path, tmp_path: Path) -> None:
    table = unpacked(SHARDED_CALLS, tmp_path)
    print(run(replay, table, STANDALONE / "differences_sharded.tsv", "--selection"))


@pytest.mark.slow
def test_all_measured_sharded_calls_are_followed(replay: Path) -> None:
    if not WHOLE_TABLE.is_file():
        pytest.skip("there is no whole table of sharded calls: name it in TTCODEGEN_SHARDED_RULES")
    print(run(replay, WHOLE_TABLE, STANDALONE / "differences_sharded.tsv"))
