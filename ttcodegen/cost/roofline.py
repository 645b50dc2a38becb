"""Roofline: device-independent work of ops, and the shortest time for it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ttcodegen.ops as catalogue
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.flatbuffer import program as file
from ttcodegen.layout.placements import stored_bytes
from ttcodegen.ops.core.definition import TTNN
from ttcodegen.ops.core.traits import OpShapes, one_per_element
from ttcodegen.systems.description import ChipDescription
from ttcodegen.systems.performance import performance_of

# Device-independent work of an op: data moved and operations computed.

_QUICK = 200_000_000
"""Operations and bytes in a fifth of the time of the shortest build, 10 s of two cores."""
_QUICK_OF_PROGRAM = 20_000_000
"""The same for each program of the device: its kernels take a second to build."""

# The emulated device, in the same unit: measured were a product of 16,384 tiles and 6 MB,
# elementwise ops on 8,192 tiles and 50 MB, and models of 25 small programs.
_LAUNCH = 5_000_000
_EMULATED_TILE = 4_000
_EMULATED_BYTE = 11


@dataclass(frozen=True)
class Cost:
    """The work of an op."""

    moved: int
    """Bytes of operands and results, each once, as stored in memory."""
    flops: int
    """Multiplications and additions, and the like on integers."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.moved + other.moved, self.flops + other.flops)


def cost_of(program: file.Program, operation: file.Operation) -> Cost:
    """The work of an op of a program; nothing for calls, whose ops are counted themselves."""
    name = operation.name.partition(".")[2]
    if operation.callee is not None or name == "deallocate":
        return Cost(0, 0)
    operands = [program.tensors[tensor].type.placement for tensor in operation.operands]
    results = [program.tensors[tensor].type.placement for tensor in operation.results]
    return call_work(name, operands, results, _attributes(operation))


def quick_runs(binary: object) -> int:
    """Count of runs of a lowered program, in numpy and in C++ on this machine, that take a fifth
    of the time of its build."""
    if isinstance(binary, file.DeviceBinary):
        work = _emulated_work(binary)
        return (_QUICK + len(binary.programs) * _QUICK_OF_PROGRAM) // max(work, 1)
    if not isinstance(binary, file.Binary):
        return 0
    costs = (cost_of(each, op) for each in binary.programs for op in each.operations)
    return _QUICK // max(sum(cost.flops + cost.moved for cost in costs), 1)


def _emulated_work(binary: file.DeviceBinary) -> int:
    """Work of the emulated device, in the unit of `_QUICK`."""
    launched = [
        binary.programs[attribute.value.value].costs
        for function in binary.functions
        for operation in function.operations
        if operation.name == file.RUN_PROGRAM
        for attribute in operation.attributes
        if attribute.name == file.PROGRAM and isinstance(attribute.value, file.Integer)
    ]
    return sum(
        _LAUNCH + _EMULATED_TILE * costs.tiles_computed + _EMULATED_BYTE * costs.noc_bytes
        for costs in launched
    )


def call_work(
    name: str,
    operands: Sequence[TensorPlacement],
    results: Sequence[TensorPlacement],
    attributes: Mapping[str, Any],
) -> Cost:
    """The work of a call of the library; `attributes`: at least those that are numbers, booleans
    and lists of integers."""
    moved = sum(stored_bytes(placement) for placement in (*operands, *results))
    if not operands or not results:
        return Cost(moved, 0)
    catalogue.load()
    definition = TTNN.get(name)
    rule = one_per_element if definition is None else definition.flops
    shapes = OpShapes(attributes, [o.shape for o in operands], [r.shape for r in results])
    return Cost(moved, rule(shapes))


def _attributes(operation: file.Operation) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for attribute in operation.attributes:
        value = attribute.value
        if isinstance(value, file.Integers):
            found[attribute.name] = value.values
        elif isinstance(value, file.Integer | file.Boolean):
            found[attribute.name] = value.value
    return found


# The shortest time that work can take on a machine: its roofline.


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
