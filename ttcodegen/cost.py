"""Resource use of a program: cost estimates of calls, device memory use, and the roofline."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.func import FuncOp

import ttcodegen.ops as catalogue
from ttcodegen.dialects.operations.functions import location_text
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import declared_hosts
from ttcodegen.dialects.ttmetal.programs import RUN_PROGRAM, VIEW
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.program import Operation, Program
from ttcodegen.layout.placements import is_view, stored_bytes
from ttcodegen.ops.core.definition import TTNN
from ttcodegen.ops.core.traits import OpShapes, one_per_element
from ttcodegen.optimizer.call import call_of
from ttcodegen.optimizer.cost.calls import CallCost, CostModel
from ttcodegen.optimizer.programs.matmul import fidelity_passes
from ttcodegen.systems.cards import performance_of
from ttcodegen.systems.description import ChipDescription
from ttcodegen.transforms.device import DEALLOCATIONS

# Device-independent work of an op: bytes moved and operations computed.

_QUICK = 200_000_000
"""Work (operations and bytes) that takes a fifth of the shortest build time, 10 s on two cores."""
_QUICK_OF_PROGRAM = 20_000_000
"""The same per device program: its kernels take a second to build."""

_CALL = 20_000
"""Overhead of a call, in the unit of `_QUICK`: numpy runs it twice, the C++ once."""
_UNKNOWN_TRIPS = 100
"""Assumed trip count of loops with a data-dependent trip count."""

# Costs of the emulated device in the same unit, fitted to a matmul (16,384 tiles, 6 MB),
# elementwise ops (8,192 tiles, 50 MB), and models of 25 small programs.
_LAUNCH = 5_000_000
_EMULATED_TILE = 4_000
_EMULATED_BYTE = 11


@dataclass(frozen=True)
class Cost:
    """Work of an op."""

    moved: int
    """Stored bytes of operands and results, each counted once."""
    flops: int
    """Multiplications and additions, also of integers."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.moved + other.moved, self.flops + other.flops)


def cost_of(program: file.Program, operation: file.Operation) -> Cost:
    """Returns the work of an op in a program; zero for calls, whose ops are counted separately."""
    name = operation.name.partition(".")[2]
    if operation.callee is not None or name == "deallocate":
        return Cost(0, 0)
    operands = [program.tensors[tensor].type.placement for tensor in operation.operands]
    results = [program.tensors[tensor].type.placement for tensor in operation.results]
    return call_work(name, operands, results, _attributes(operation))


def quick_runs(binary: object) -> int:
    """Returns how many runs of a program take a fifth of its build time on this machine.

    A run consists of one in numpy and one in C++.
    """
    if isinstance(binary, file.DeviceBinary):
        work = _emulated_work(binary)
        return (_QUICK + len(binary.programs) * _QUICK_OF_PROGRAM) // max(work, 1)
    if not isinstance(binary, file.Binary):
        return 0
    times = _run_counts({each.name: each.operations for each in binary.programs})
    work = 0
    for program in binary.programs:
        costs = [cost_of(program, op) for op in program.operations]
        once = sum(_CALL + cost.flops + cost.moved for cost in costs)
        work += times[program.name] * once
    return _QUICK // max(work, 1)


def _run_counts(functions: Mapping[str, Sequence[file.Operation]]) -> dict[str, int]:
    """Returns how often each function runs if those without callers run once."""
    callers: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for name, operations in functions.items():
        for operation in operations:
            if operation.callee is not None:
                callers[operation.callee].append((name, _trips(operation)))
    found: dict[str, int] = {}

    def times(name: str) -> int:
        if name not in found:
            calls = callers.get(name)
            found[name] = 1 if calls is None else sum(times(by) * trips for by, trips in calls)
        return found[name]

    return {name: times(name) for name in functions}


def _trips(operation: file.Operation) -> int:
    if operation.name != file.WHILE_LOOP:
        return 1
    return int(_attributes(operation).get(file.TRIP_COUNT, _UNKNOWN_TRIPS))


def _emulated_work(binary: file.DeviceBinary) -> int:
    """Returns the work of the emulated device, in the unit of `_QUICK`."""
    times = _run_counts({each.name: each.operations for each in binary.functions})
    launched = [
        (times[function.name], binary.programs[attribute.value.value].costs)
        for function in binary.functions
        for operation in function.operations
        if operation.name == RUN_PROGRAM
        for attribute in operation.attributes
        if attribute.name == file.PROGRAM and isinstance(attribute.value, file.Integer)
    ]
    return sum(
        count * (_LAUNCH + _EMULATED_TILE * cost.tiles_computed + _EMULATED_BYTE * cost.noc_bytes)
        for count, cost in launched
    )


def call_work(
    name: str,
    operands: Sequence[TensorPlacement],
    results: Sequence[TensorPlacement],
    attributes: Mapping[str, Any],
) -> Cost:
    """Returns the work of a ttnn call.

    `attributes` contains at least the numbers, booleans and integer lists.
    """
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


# Roofline: lower bound of the time of work on a machine.


# FLOPs per cycle of the matrix engine of a Tensix core, 2 x 8 x 16 x 16, in the lowest fidelity
# (tt-metal, tech_reports/GEMM_FLOPS); HiFi4, which multiplies all bits of bfloat16, takes four
# cycles.
_FLOPS_PER_CYCLE = 4096
_HIFI4_CYCLES = 4


@dataclass(frozen=True)
class Roofline:
    """Peak rates of a machine."""

    flops: float
    """FLOPs per second."""
    bandwidth: float
    """Bytes per second."""

    def least_seconds(self, cost: Cost) -> float:
        """Returns the lower bound of the time of work."""
        return max(cost.flops / self.flops, cost.moved / self.bandwidth)

    def bound(self, cost: Cost) -> str:
        """Returns "compute" or "memory", whichever takes longer; empty without work."""
        if not cost.flops and not cost.moved:
            return ""
        computes = cost.flops / self.flops > cost.moved / self.bandwidth
        return "compute" if computes else "memory"


def card_roofline(chip: ChipDescription, passes: int = _HIFI4_CYCLES) -> Roofline:
    """Returns the roofline of a card with all cores and all DRAM channels.

    `passes`: passes of the matrix engine in the math fidelity; HiFi4 by default.
    """
    speed = performance_of(chip)
    flops = chip.cores * _FLOPS_PER_CYCLE / passes * speed.clock
    return Roofline(flops, speed.dram_bandwidth)


def host_roofline() -> Roofline:
    """Measures the roofline of this machine with a matmul and a copy; best of three."""
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


@dataclass(frozen=True)
class CallEstimate:
    """Estimate of a ttnn call."""

    op: str
    location: str | None
    cost: CallCost
    least_seconds: float
    """Roofline time in the call's math fidelity, with all cores and the full DRAM bandwidth."""

    def to_json(self) -> dict[str, Any]:
        """Returns the manifest row. Times are in microseconds, `l1_bytes` is per core."""
        return {
            "op": self.op,
            "location": self.location,
            "time_us": _microseconds(self.cost.seconds),
            "least_us": _microseconds(self.least_seconds),
            "bound": self.cost.bound,
            "cores": self.cost.cores,
            "l1_bytes": self.cost.l1_bytes,
            "dram_bytes": self.cost.dram_bytes,
            **({"link_bytes": self.cost.link_bytes} if self.cost.link_bytes else {}),
        }


@dataclass(frozen=True)
class FunctionEstimate:
    """Estimates of all calls of a function that take time."""

    calls: tuple[CallEstimate, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns the manifest entry: totals, time by bound, and the calls."""
        by_bound: defaultdict[str, float] = defaultdict(float)
        for call in self.calls:
            by_bound[call.cost.bound] += call.cost.seconds
        return {
            "time_us": _microseconds(sum(call.cost.seconds for call in self.calls)),
            "least_us": _microseconds(sum(call.least_seconds for call in self.calls)),
            "bound_us": {name: _microseconds(by_bound[name]) for name in sorted(by_bound)},
            "l1_bytes": max((call.cost.l1_bytes for call in self.calls), default=0),
            "dram_bytes": sum(call.cost.dram_bytes for call in self.calls),
            **self._links(),
            "ops": [call.to_json() for call in self.calls],
        }

    def _links(self) -> dict[str, Any]:
        """Returns the link estimates of a program on several chips; empty without link traffic.

        These are the busy time of links, the traffic over the busiest ones, and the time if
        communication overlapped computation: the maximum of chip and link time. `time_us` assumes
        no overlap.
        """
        link_seconds = sum(call.cost.link_seconds for call in self.calls)
        if not link_seconds:
            return {}
        chip_seconds = sum(call.cost.chip_seconds for call in self.calls)
        return {
            "link_us": _microseconds(link_seconds),
            "link_bytes": sum(call.cost.link_bytes for call in self.calls),
            "overlapped_us": _microseconds(max(chip_seconds, link_seconds)),
            "overlapped_bound": "link" if link_seconds > chip_seconds else "chip",
        }


def function_estimate(function: FuncOp, chip: ChipDescription) -> FunctionEstimate:
    """Estimates the calls of a function with layouts on a chip.

    Const-eval functions, computed once from weights, are not counted.
    """
    return FunctionEstimate(tuple(_calls(function, chip)))


def _calls(function: FuncOp, chip: ChipDescription) -> Iterator[CallEstimate]:
    model = CostModel(chip, hosts=declared_hosts(function))
    known: dict[object, tuple[CallCost, float]] = {}
    for op in function.walk():
        if not isinstance(op, CatalogueOp):
            continue
        key = (op.name, tuple(v.type for v in (*op.operands, *op.results)), *op.properties.items())
        if key not in known:
            call = call_of(op)
            cost = model.cost(call)
            work = call_work(call.name, call.operands, call.results, call.attributes)
            roofline = card_roofline(chip, fidelity_passes(call, chip.arch == "wormhole_b0"))
            known[key] = cost, roofline.least_seconds(Cost(cost.dram_bytes, work.flops))
        cost, least = known[key]
        if cost.seconds:
            yield CallEstimate(op.name, location_text(op), cost, least)


def _microseconds(seconds: float) -> float:
    return round(seconds * 1e6, 3)


MEMORIES: tuple[str, ...] = ("dram", "l1")
"""Memories of the device."""


@dataclass(frozen=True)
class MemoryStep:
    """Memory use after an op, before its operands are deallocated."""

    op: str
    location: str | None
    allocated: dict[str, int]
    """Bytes by memory."""


@dataclass(frozen=True)
class Leak:
    """A tensor that the program allocates and neither returns nor deallocates."""

    name: str
    memory: str
    size: int
    """Bytes."""


@dataclass(frozen=True)
class MemoryUse:
    """Memory use of a program's tensors.

    Arguments and constants are included; circular buffers and kernel-internal memory are not.
    """

    steps: tuple[MemoryStep, ...]
    peak: dict[str, int]
    """Maximum bytes at any time, by memory."""
    leaks: tuple[Leak, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns the result file entry."""
        return {
            "peak_bytes": self.peak,
            "leaks": [
                {"tensor": leak.name, "memory": leak.memory, "bytes": leak.size}
                for leak in self.leaks
            ],
        }


def memory_use(
    program: Program, bytes_of: Callable[[TensorPlacement], int] = stored_bytes
) -> MemoryUse:
    """Computes the memory use of a program's run; `bytes_of` returns the size of a tensor."""
    catalogue.load()
    device = _Memory(program, bytes_of)
    for entry in program.inputs:
        device.allocate(entry.tensor)
    steps = tuple(_steps(program, device))
    kept = {entry.tensor for entry in (*program.inputs, *program.outputs)}
    for operation in program.operations:
        if operation.name == "ttcore.load_cached":
            kept.update(operation.results)
    # Operands whose memory a kept result may share.
    for operation in reversed(program.operations):
        if _may_alias(operation) and not kept.isdisjoint(operation.results):
            kept.add(operation.operands[0])
    return MemoryUse(steps, device.peak, tuple(device.leaks(kept)))


def _steps(program: Program, device: _Memory) -> Iterator[MemoryStep]:
    for operation in program.operations:
        if operation.name in DEALLOCATIONS:
            device.free(operation.operands[0])
            continue
        aliased = _aliased(program, operation)
        for tensor in operation.results:
            device.allocate(tensor, aliased)
        yield MemoryStep(operation.name, operation.location, dict(device.allocated))


def _aliased(program: Program, operation: Operation) -> int | None:
    """Returns the operand whose buffer the results of an op share; None if there is none."""
    if not _may_alias(operation):
        return None
    source = operation.operands[0]
    if operation.name == VIEW:
        return source
    before, after = (program.tensors[t].type.placement for t in (source, operation.results[0]))
    return source if is_view(before, after) else None


def _may_alias(operation: Operation) -> bool:
    # Ops in a file can be malformed.
    if not operation.operands or not operation.results:
        return False
    definition = TTNN.get(operation.name.partition(".")[2])
    return operation.name == VIEW or (definition is not None and definition.may_alias)


class _Memory:
    """Allocation state. Tensors that share a buffer count once."""

    def __init__(self, program: Program, bytes_of: Callable[[TensorPlacement], int]) -> None:
        self._program = program
        self._bytes_of = bytes_of
        self._owner: dict[int, int] = {}
        self._sizes: dict[int, tuple[str, int]] = {}
        self.allocated = dict.fromkeys(MEMORIES, 0)
        self.peak = dict.fromkeys(MEMORIES, 0)

    def allocate(self, tensor: int, aliased: int | None = None) -> None:
        """Allocates the buffer of a tensor, unless it shares that of `aliased`."""
        owner = self._owner.get(aliased, tensor) if aliased is not None else tensor
        self._owner[tensor] = owner
        placement = self._program.tensors[tensor].type.placement
        if owner != tensor or placement.buffer_type not in MEMORIES:
            return
        size = self._bytes_of(placement)
        self._sizes[tensor] = (placement.buffer_type, size)
        total = self.allocated[placement.buffer_type] + size
        self.allocated[placement.buffer_type] = total
        self.peak[placement.buffer_type] = max(self.peak[placement.buffer_type], total)

    def free(self, tensor: int) -> None:
        """Frees the buffer of a tensor, once."""
        memory, size = self._sizes.pop(self._owner.get(tensor, tensor), ("", 0))
        if memory:
            self.allocated[memory] -= size

    def leaks(self, kept: set[int]) -> Iterator[Leak]:
        """Yields allocated buffers that no kept tensor uses."""
        owners = {self._owner.get(tensor, tensor) for tensor in kept}
        for tensor, (memory, size) in self._sizes.items():
            if tensor not in owners:
                yield Leak(self._program.tensors[tensor].name or f"tensor {tensor}", memory, size)
