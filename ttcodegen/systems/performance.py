"""Performance figures of the chips, with their sources.

`tech_reports` are those of tt-metal. A figure without a source is an estimate and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ttcodegen.systems.cards import default_system
from ttcodegen.systems.description import ChipDescription

FIDELITY_PASSES: Mapping[str, int] = {"lofi": 1, "hifi2": 2, "hifi3": 3, "hifi4": 4}
"""Phases of the matrix engine per tile pair in each fidelity.

GEMM_FLOPS.md: 16, 32, 48 and 64 cycles a tile.
"""


@dataclass(frozen=True)
class Performance:
    """One chip. Rates are per cycle of its clock, unless they say otherwise."""

    clock: float
    """Hz of the Tensix cores (GEMM_FLOPS.md)."""
    dram_bandwidth: float
    """Bytes per second of all banks together (data sheets of n150 and p150)."""
    noc_bytes: int
    """Bytes that a core takes from or puts on one NoC per cycle (a flit; 256 and 512 bits)."""
    l1_bank: int
    """Bytes of each L1 that tensors and circular buffers share: its size less what firmware and
    kernels take (dev_mem_map.h; for wormhole_b0 measured as well)."""
    link_bandwidth: float
    """Bytes per second of one ethernet link in one direction, with packets of 4 KiB on a line of
    chips (tests/tt_metal/microbenchmarks/ethernet/golden/*/fabric_edm_bandwidth_golden.csv of
    tt-metal: 11.67 of the 12.5 bytes per cycle that a link has, and 12.78 on blackhole)."""
    tile_product: int = 16
    """Cycles of a product of two 32x32 tiles in the lowest fidelity (GEMM_FLOPS.md)."""
    vector_lanes: int = 32
    """Elements that the vector engine computes with at a time (tt-isa, SFPU)."""
    unpacked_bytes: int = 64
    """Bytes that a core moves from its L1 into registers, or back, per cycle (estimate)."""
    tile_overhead: int = 60
    """Cycles of synchronisation for each tile that goes through the circular buffers of a core
    (estimate)."""
    transaction: int = 30
    """Cycles for a data-movement core to issue a read or write (estimate)."""
    launch: float = 3e-6
    """Seconds between the end of a program and the begin of the next in a trace (LLMs/llms.md:
    below 6 us; single-digit microseconds)."""
    link_latency: float = 650e-9
    """Seconds from one chip to the next (EthernetMultichip/BasicEthernetGuide.md; measured on
    wormhole_b0)."""
    l1_small: int = 32768
    """Bytes of each L1 that windowed operations keep their tables in: what generated programs open
    the device with."""

    @property
    def usable_l1(self) -> int:
        """Bytes of each L1 that tensors and circular buffers may take."""
        return self.l1_bank - self.l1_small


_CHIPS = {
    "wormhole_b0": Performance(1.0e9, 288e9, 32, 1_499_136 - 103_712, 11.67e9),
    "blackhole": Performance(1.35e9, 512e9, 64, 1_572_864 - 111_104, 12.78 * 1.35e9),
}


def performance(arch: str) -> Performance:
    """The figures of the default chip of an architecture.

    Raises:
        KeyError: if there is no such architecture.
    """
    return _CHIPS[arch]


def performance_of(chip: ChipDescription) -> Performance:
    """The figures of a chip, whose DRAM banks share the bandwidth: 448 GB/s of a p100, which has
    seven of the eight of a p150."""
    figures = performance(chip.arch)
    banks = default_system(chip.arch).chip.num_dram_channels
    if chip.num_dram_channels == banks:
        return figures
    share = chip.num_dram_channels / banks
    return replace(figures, dram_bandwidth=figures.dram_bandwidth * share)
