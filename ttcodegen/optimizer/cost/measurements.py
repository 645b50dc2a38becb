"""Constants of the library's kernels fitted to measurements, and measured times of calls.

Half of the calls of `tests/cost/measured.tsv`, drawn once, gave the figures; the other half is
what tests hold them to. Each names the calls that it comes from. Cycles are those of the clock of
a core, and times are of kernels, without what passes between two programs.
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
    """The kernels on one architecture."""

    between: float = 0.65e-6
    """Seconds from the end of the kernels of a program to those of the next in a trace (a decode
    layer of 17 programs on Blackhole: 0.52 to 1.6 us; decode of Llama 70B on Wormhole: 0.70 us in
    the median of 150)."""
    host_read: float = 22e-6
    """Seconds from a program whose result the host reads to the next, at least (474 calls of
    DeepLab and OFT without a trace on Blackhole: 95 % of the gaps are longer than 22 and 33 us)."""
    start: float = 1.37e-6
    """Seconds of a program of tensors that are interleaved before its first tile (`relu`, `add`
    and 65 unary ops of one tile)."""
    start_in_shards: float = 0.84e-6
    """The same if all tensors are in shards where they are used (`relu` and `add`, 405 calls)."""
    start_of_product: float = 3.1e-6
    """The same of a product, whose cores wait for each other first (486 products)."""
    dram_interleaved: float = 219e9
    """Bytes per second of interleaved tensors without the time of pages (`relu`, `add`)."""
    dram_product: float = 201e9
    """The same in products, whose senders read whole blocks (388 products)."""
    dram_sharded: float = 237e9
    """Bytes per second of factors that are sharded over the banks (49 products)."""
    dram_page: float = 0.1e-9
    """Seconds of DRAM for each page of an interleaved tensor (`relu` of bf16, bfp8 and bfp4)."""

    product_page: float = 0.0
    """The same of factors of products (`matmul` of bfp8 and bfp4, 74 on n150 and 46 on p150)."""

    # Elementwise

    read_wait: int = 240
    """Cycles from the request of a tile to its arrival, one after the other (`relu`, `add`)."""
    write_wait: int = 50
    """The same of a tile that is written."""
    read_bytes: float = 32.0
    """Bytes per cycle that a core reads over the NoC (`relu`, `add` of tensors in L1)."""
    write_bytes: float = 3.0
    """The same that it writes, while all cores do."""
    broadcast: int = 1200
    """Cycles to broadcast a row or a column to a tile (7 ops of such an operand)."""
    two_tiles: int = 82
    """Cycles of the matrix engine for a sum of two tiles in L1 (`add` in shards, 199 calls)."""
    one_tile: int = 180
    """Cycles in which a tile passes through the registers on its way to the vector engine."""

    # Along rows

    layer_norm: tuple[int, int] = (8400, 1130)
    """Cycles of a normalisation with a mean and those of each tile of a core (8 sharded calls and
    2 interleaved ones, on n300, n150 and Blackhole)."""
    rms_norm: tuple[int, int] = (5300, 600)
    """The same without a mean (4 sharded calls and 5 interleaved ones)."""
    softmax: tuple[int, int] = (12500, 400)
    """The same of a softmax (2 calls of heads of one tile; those of tiles: what is left of the
    self-attention of BERT, 0.34 ms, for 288 tiles of a core)."""

    searched: int = 23
    """Cycles to read an element of a row and compare it (tt-metal issue 15736: 32 rows of 128,256
    on one core, by which a step of decoding takes 84.6 ms longer; pull request 43255: 1,024 rows
    of 1,024, 26.4 ms)."""

    # Products

    tile_product: float = 17.0
    """Cycles of a product of two tiles in the lowest fidelity (products of 2048 and more)."""
    operand_sync: float = 8.5
    """Cycles to get a pair of tiles, and those of each of their bytes (products of bf16 in the
    lowest fidelities)."""
    operand_byte: float = 0.007
    packed_byte: float = 0.128
    """Cycles to put a byte of the result into L1 (products of 512)."""
    block_sync: int = 600
    """Cycles in which senders and receivers of a block find each other (products)."""
    multicast: float = 68.0
    """Cycles to read a tile and send it to a row or column of cores, and those of each byte
    (products without a configuration, 78 on n150: 92 cycles bfp4, 118 bfp8, 185 bf16)."""
    multicast_byte: float = 0.033
    own_read: float = 186.0
    """Cycles to read a tile of the right factor that no other core needs, and those of each byte
    (products of one row of tiles, 81 on n150 and 46 on p150)."""
    own_read_byte: float = 0.007


FITTED = {
    "wormhole_b0": Fitted(),
    "blackhole": replace(
        Fitted(),
        start=0.74e-6,
        start_in_shards=0.45e-6,
        start_of_product=2.23e-6,
        dram_interleaved=490e9,
        dram_product=480e9,
        dram_sharded=498e9,
        dram_page=1.0e-9,
        product_page=0.5e-9,
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
"""By kind, the factors of an estimate between which 90 % of the measured calls are; kinds with
fewer than 20 of them, and scans, have none."""


_HEADING = "architecture\tcall\tmicroseconds"


def call_key(call: LibraryCall) -> str:
    """The key of a call in the table: its name, and a digest of its tensors and attributes."""
    given = sorted((k, repr(v)) for k, v in call.attributes.items() if v is not None)
    text = repr((call.name, call.operands, call.results, given))
    return f"{call.name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def read_measured(path: Path, architecture: str) -> dict[str, float]:
    """The seconds of calls on an architecture by their keys; none if there is no file.

    Raises:
        CompileError: if the file is no such table.
    """
    if not path.exists():
        return {}
    return {key: seconds for (arch, key), seconds in _rows(path).items() if arch == architecture}


def write_measured(path: Path, architecture: str, seconds: Mapping[str, float]) -> None:
    """Adds times to a table; of a call that is there already, the new time is kept.

    Raises:
        CompileError: if the file is no such table, or cannot be written.
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
