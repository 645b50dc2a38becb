"""Replays measured calls of ttnn 0.70.1 against the CPU backend.

Of the calls on sharded tensors a selection is part of the project; where $TTCODEGEN_SHARDED_RULES
names the whole table, that is replayed too.
"""

from __future__ import annotations

import lzma
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from tests.conftest import locked
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
WHOLE_TABLE = os.environ.get("TTCODEGEN_SHARDED_RULES")
STANDALONE = ROOT / "standalone"


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-20000:]
    return done.stdout


def replaying_program(toolchain: Toolchain, cpu_backend: CPUBackend) -> Path:
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


@dataclass(frozen=True)
class Replay:
    """Outcome of a table."""

    status: int
    printed: str
    refusals: list[str]
    """Messages with which the backend refused calls."""


class Replays(Protocol):
    """Replays tables, each once in a test run."""

    def __call__(self, table: Path, differences: str, *options: str) -> Replay:
        """The outcome of a table, with the calls that differ from it by choice."""
        ...


@pytest.fixture(scope="session")
def replays(toolchain: Toolchain, cpu_backend: CPUBackend, shared_folder: Path) -> Replays:
    """Replays tables, each once in a test run."""

    def replay(table: Path, differences: str, *options: str) -> Replay:
        folder = shared_folder / "replays" / table.stem
        status, printed, refusals = (folder / name for name in ("status", "printed", "refusals"))
        with locked(BUILD.with_suffix(".lock")):
            program = replaying_program(toolchain, cpu_backend)
        with locked(folder.with_suffix(".lock")):
            if not status.exists():
                folder.mkdir(parents=True, exist_ok=True)
                packed = table.suffix == ".xz"
                done = subprocess.run(
                    [
                        *(program, unpacked(table, folder) if packed else table),
                        *(STANDALONE / differences, *options),
                    ],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    check=False,
                    env={**os.environ, "RULES_REFUSALS": str(refusals)},
                )
                printed.write_text(done.stdout)
                status.write_text(str(done.returncode))
        refused = refusals.read_text("utf-8", "replace").splitlines() if refusals.exists() else []
        return Replay(int(status.read_text()), printed.read_text(), refused)

    return replay


def unpacked(table: Path, folder: Path) -> Path:
    """The table without its compression, in a folder."""
    path = folder / table.stem
    path.write_bytes(lzma.decompress(table.read_bytes()))
    return path


TABLES = {
    CALLS: ("differences.tsv",),
    SHARDED_CALLS: ("differences_sharded.tsv", "--selection"),
}
"""Measured calls of the project, with how they are replayed."""


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.stem)
def test_the_cpu_backend_follows_the_measured_rules(replays: Replays, table: Path) -> None:
    done = replays(table, *TABLES[table])
    assert done.status == 0, done.printed[-20000:]


@pytest.mark.slow
def test_all_measured_sharded_calls_are_followed(replays: Replays) -> None:
    if WHOLE_TABLE is None:
        pytest.skip("TTCODEGEN_SHARDED_RULES names no table of sharded calls")
    done = replays(Path(WHOLE_TABLE), "differences_sharded.tsv")
    assert done.status == 0, done.printed[-20000:]
