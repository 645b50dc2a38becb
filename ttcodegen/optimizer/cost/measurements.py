"""Constants of the library's kernels fitted to measurements, and measured times of calls.

The constants are fitted to a random half of the calls in `tests/cost/measured.tsv`, and tested
against the other half. Docstrings name the calls of each constant. Cycles are core clock
cycles; times are those of kernels, without gaps between programs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.ops.core.traits import CallKind
from ttcodegen.optimizer.call import LibraryCall


@dataclass(frozen=True)
class Fitted:
    """Constants of the kernels on one architecture."""

    between: float = 0.65e-6
    """Seconds between the kernels of consecutive programs in a trace (a decode layer of 17 programs
    on Blackhole: 0.52 to 1.6 us; decode of Llama 70B on Wormhole: median 0.70 us of 150)."""
    host_read: float = 22e-6
    """Minimum seconds from a program whose result the host reads to the next (474 calls of DeepLab
    and OFT without a trace on Blackhole: 95 % of the gaps are longer than 22 and 33 us)."""
    start: float = 1.37e-6
    """Seconds before the first tile of a program on interleaved tensors (`relu`, `add` and 65 unary
    ops of one tile)."""
    start_in_shards: float = 0.84e-6
    """The same if all tensors are local shards (`relu` and `add`, 405 calls)."""
    start_of_matmul: float = 3.1e-6
    """The same for a matmul, whose cores synchronize first (486 matmuls)."""
    dram_interleaved: float = 219e9
    """DRAM bandwidth of interleaved tensors in bytes per second, apart from the time of pages
    (`relu`, `add`)."""
    dram_matmul: float = 201e9
    """The same in matmuls, whose senders read whole blocks (388 matmuls)."""
    dram_sharded: float = 237e9
    """DRAM bandwidth of operands that are sharded over the banks (49 matmuls)."""
    dram_page: float = 0.1e-9
    """DRAM seconds per page of an interleaved tensor (`relu` of bf16, bfp8 and bfp4)."""

    matmul_page: float = 0.0
    """The same in matmuls (`matmul` of bfp8 and bfp4, 74 on n150 and 46 on p150)."""

    # Elementwise

    read_wait: int = 240
    """Latency of a tile read in cycles, if tiles are read one by one (`relu`, `add`)."""
    write_wait: int = 50
    """The same for a tile write."""
    read_bytes: float = 32.0
    """NoC bytes per cycle that a core reads (`relu`, `add` of tensors in L1)."""
    write_bytes: float = 3.0
    """NoC bytes per cycle that a core writes while all cores write."""
    broadcast: int = 1200
    """Cycles to broadcast a row or a column to a tile (7 ops with such an operand)."""
    two_tiles: int = 82
    """Matrix engine cycles of a sum of two tiles in L1 (`add` in shards, 199 calls)."""
    one_tile: int = 180
    """Cycles of copying a tile through the registers for the vector engine."""

    # Along rows

    layer_norm: tuple[int, int] = (8400, 1130)
    """Cycles of a normalization with a mean: fixed, and per tile of a core (8 sharded calls and 2
    interleaved ones, on n300, n150 and Blackhole)."""
    rms_norm: tuple[int, int] = (5300, 600)
    """The same without a mean (4 sharded calls and 5 interleaved ones)."""
    softmax: tuple[int, int] = (12500, 400)
    """The same for softmax (fixed: 2 calls on heads of one tile; per tile: the rest of the
    self-attention of BERT, 0.34 ms, over the 288 tiles of a core)."""

    searched: int = 23
    """Cycles to read an element of a row and compare it (tt-metal #15736: 32 rows of 128,256 on one
    core prolong a decode step by 84.6 ms; #43255: 1,024 rows of 1,024, 26.4 ms)."""

    # Matmuls

    tile_product: float = 17.0
    """Cycles of a product of two tiles in the lowest fidelity (matmuls of 2048 and more)."""
    operand_sync: float = 8.5
    """Cycles to wait for a pair of tiles (bf16 matmuls in the lowest fidelities)."""
    operand_byte: float = 0.007
    """Cycles per byte of these tiles."""
    packed_byte: float = 0.128
    """Cycles to pack a byte of the result into L1 (matmuls of 512)."""
    block_sync: int = 600
    """Cycles in which senders and receivers synchronize for a block (matmuls)."""
    multicast: float = 68.0
    """Cycles to read a tile and multicast it to a row or column of cores (matmuls without a program
    config, 78 on n150: 92 cycles bfp4, 118 bfp8, 185 bf16)."""
    multicast_byte: float = 0.033
    """Cycles per byte of such a tile."""
    own_read: float = 186.0
    """Cycles to read a tile of the right operand that no other core needs (matmuls of one tile row,
    81 on n150 and 46 on p150)."""
    own_read_byte: float = 0.007
    """Cycles per byte of such a tile."""


FITTED = {
    "wormhole_b0": Fitted(),
    "blackhole": replace(
        Fitted(),
        start=0.74e-6,
        start_in_shards=0.45e-6,
        start_of_matmul=2.23e-6,
        dram_interleaved=490e9,
        dram_matmul=480e9,
        dram_sharded=498e9,
        dram_page=1.0e-9,
        matmul_page=0.5e-9,
        multicast=51.0,
        own_read=48.0,
    ),
}

NINE_OF_TEN: Mapping[CallKind, tuple[float, float]] = {
    CallKind.ELEMENTWISE: (0.75, 1.25),
    CallKind.PRODUCT: (0.85, 1.35),
    CallKind.COPY: (0.8, 1.3),
    CallKind.SLICE: (0.7, 1.15),
    CallKind.LAYOUT: (0.7, 2.1),
    CallKind.PERMUTATION: (0.6, 1.6),
}
"""Factors of the 90 % interval of measured over estimated times, by kind of call.

Kinds with fewer than 20 measured calls, and scans, have none."""


_HEADING = "architecture\tcall\tmicroseconds"


def call_key(call: LibraryCall) -> str:
    """Returns the key of a call: its name and a digest of its tensors and attributes."""
    given = sorted((k, repr(v)) for k, v in call.attributes.items() if v is not None)
    text = repr((call.name, call.operands, call.results, given))
    return f"{call.name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def read_measured(path: Path, architecture: str) -> dict[str, float]:
    """Reads the measured seconds of calls on an architecture, by key; empty if there is no file.

    Raises:
        CompileError: if the file is not a table of measured times.
    """
    if not path.exists():
        return {}
    return {key: seconds for (arch, key), seconds in _rows(path).items() if arch == architecture}


def write_measured(path: Path, architecture: str, seconds: Mapping[str, float]) -> None:
    """Adds times to a table; they replace those of the same calls.

    Raises:
        CompileError: if the file is not a table of measured times, or cannot be written.
    """
    rows = _rows(path) if path.exists() else {}
    rows |= {(architecture, key): value for key, value in seconds.items()}
    lines = [f"{arch}\t{key}\t{rows[arch, key] * 1e6:.3f}" for arch, key in sorted(rows)]
    try:
        path.write_text("\n".join([_HEADING, *lines, ""]), "utf-8")
    except OSError as error:
        raise CompileError(f"cannot write '{path}': {error.strerror or error}") from None


def _rows(path: Path) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    try:
        heading, *lines = path.read_text("utf-8").splitlines() or [""]
        if heading != _HEADING:
            raise ValueError(f"its first line is not '{_HEADING}'")
        for line in lines:
            arch, key, microseconds = line.split("\t")
            found[arch, key] = float(microseconds) / 1e6
    except (OSError, ValueError) as error:
        raise CompileError(f"'{path}' is no table of measured times: {error}") from None
    return found
