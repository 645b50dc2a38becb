"""The shortest time that work can take on a machine: its roofline."""

from __future__ import annotations

import time
from dataclasses import dataclass

from ttcodegen.cost.work import Cost
from ttcodegen.systems.description import ChipDescription
from ttcodegen.systems.performance import performance_of

# Multiplications and additions of the matrix engine of a Tensix core in a cycle, 2 x 8 x 16 x 16,
# in the lowest fidelity (tt-metal, tech_reports/GEMM_FLOPS); HiFi4, in which all bits of bfloat16
# are multiplied, needs four cycles for them.
_FLOPS_PER_CYCLE = 4096
_HIFI4_CYCLES = 4


@dataclass(frozen=True)
class Roofline:
    """Peak rates of a machine."""

    flops: float
    """Per second."""
    bandwidth: float
    """Bytes per second."""

    def least_seconds(self, cost: Cost) -> float:
        """The time that the work takes at least."""
        return max(cost.flops / self.flops, cost.moved / self.bandwidth)

    def bound(self, cost: Cost) -> str:
        """compute or memory, whichever takes longer; empty if there is no work."""
        if not cost.flops and not cost.moved:
            return ""
        computes = cost.flops / self.flops > cost.moved / self.bandwidth
        return "compute" if computes else "memory"


def card_roofline(chip: ChipDescription, passes: int = _HIFI4_CYCLES) -> Roofline:
    """That of a card: all of its cores, all of its DRAM channels.

    `passes`: how often the matrix engine multiplies in the fidelity; HiFi4 by default.
    """
    speed = performance_of(chip)
    flops = chip.cores * _FLOPS_PER_CYCLE / passes * speed.clock
    return Roofline(flops, speed.dram_bandwidth)


def host_roofline() -> Roofline:
    """That of this machine, measured: a product of matrices and a copy, each the best of a few."""
    import numpy as np

    size = 768
    a = np.ones((size, size), np.float32)
    seconds = min(_seconds_of(lambda: a @ a) for _ in range(3))
    source = np.zeros(1 << 24, np.uint8)
    target = np.empty_like(source)
    copying = min(_seconds_of(lambda: np.copyto(target, source)) for _ in range(3))
    return Roofline(2 * size**3 / seconds, 2 * source.nbytes / copying)


def _seconds_of(action: object) -> float:
    assert callable(action)
    start = time.perf_counter()
    action()
    return max(time.perf_counter() - start, 1e-9)
