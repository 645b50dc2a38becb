"""How long ops took: those of a flatbuffer in numpy, and the calls of a shared object on the CPU
backend."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ttcodegen.cost.work import Cost
from ttcodegen.flatbuffer.program import Integer, Operation
from ttcodegen.flatbuffer.ttm_program import LINK_BYTES, LINK_HOPS
from ttcodegen.numerics.execution import Observation
from ttcodegen.optimizer.core.call import call_in_file
from ttcodegen.optimizer.cost.calls import CallCost, CostModel
from ttcodegen.rt.device_profile import ProgramCounts
from ttcodegen.rt.op_calls import ExpectedCall, expected_calls, ops_of_calls
from ttcodegen.runtime.backend_reports import ReportedCall
from ttcodegen.runtime.executable import FlatbufferExecutable, TTMExecutable, TTNNExecutable

WHOLE_PROGRAM = "(whole program)"
"""What is measured of a program whose calls are not reported."""
OUTSIDE = "(outside of the calls)"
"""What is left of the time of a program: its own code, and arrays that are brought to the device
and back."""
_NO_WORK = Cost(0, 0)


@dataclass
class OpTimes:
    """What was measured of an op."""

    program: str
    index: int | None
    """Its index in the flatbuffer, None for what is no op there."""
    op: str
    location: str | None
    cost: Cost
    """Of one call."""
    estimate: CallCost | None = None
    """What the model of cost says of one call of the library."""
    fidelity: str | None = None
    """Of a program of kernels."""
    counts: ProgramCounts | None = None
    """What the emulated device counted of one call of a program of kernels."""
    spans: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    """Begin and duration of each call, in seconds."""
    processor_seconds: float | None = None
    """Of all calls and all threads, where that was measured."""

    @property
    def seconds(self) -> float:
        """The time of all calls."""
        return sum(duration for _, duration in self.spans)

    def add(self, call: ReportedCall) -> None:
        """Counts a call."""
        self.spans.append((call.begin, call.seconds))
        self.processor_seconds = (self.processor_seconds or 0.0) + call.processor_seconds


class KnownOps:
    """What a flatbuffer says of its ops before they run."""

    def __init__(self, flatbuffer: FlatbufferExecutable, model: CostModel) -> None:
        self.flatbuffer = flatbuffer
        self._model = model
        self._functions = {f.name: f for f in flatbuffer.functions}
        self.operations = {f.name: flatbuffer.operations(f) for f in flatbuffer.functions}

    def times(self, program: str, index: int) -> OpTimes:
        """An op that was not measured yet."""
        operation = self.operations[program][index]
        name, cost = self.flatbuffer.work(program, operation)
        estimate = None
        if isinstance(self.flatbuffer, TTNNExecutable) and operation.callee is None:
            estimate = self._model.cost(call_in_file(self._functions[program], operation))
        if isinstance(self.flatbuffer, TTMExecutable) and operation.callee is not None:
            estimate = self._exchange(operation)
        times = OpTimes(program, index, name, operation.location, cost, estimate)
        if isinstance(self.flatbuffer, TTMExecutable):
            launched = self.flatbuffer.launched(operation)
            times.fidelity = None if launched is None else launched.fidelity
        return times

    def _exchange(self, operation: Operation) -> CallCost | None:
        """What it takes the chips to do a call themselves, None if the CPU does it."""
        numbers = {
            attribute.name: attribute.value.value
            for attribute in operation.attributes
            if isinstance(attribute.value, Integer)
        }
        if LINK_BYTES not in numbers:
            return None
        return self._model.exchange(numbers[LINK_BYTES], numbers.get(LINK_HOPS, 0))


class OpClock:
    """Measures the ops of a run of a flatbuffer from one observation to the next."""

    def __init__(self, known: KnownOps) -> None:
        self._known = known
        self._ops: dict[tuple[str, int], OpTimes] = {}
        self._indices: dict[int, int] = {}
        self._mark = 0.0

    def start(self) -> None:
        """A run begins. Its steps are objects of its own."""
        self._indices.clear()
        self._mark = time.perf_counter()

    def observe(self, observation: Observation) -> None:
        """An op ended. What runs inside a program of the device counts for the program."""
        now = time.perf_counter()
        begin = self._mark
        function, step = observation.function, observation.step
        if not self._known.operations[function.name]:
            return
        index = self._indices.get(id(step))
        if index is None:
            self._indices |= {id(s): i for i, s in enumerate(function.steps)}
            index = self._indices[id(step)]
        if step.name != "ttnn.deallocate":
            self._times(function.name, index).spans.append((begin, now - begin))
        # The time of the observer itself does not count.
        self._mark = time.perf_counter()

    def _times(self, program: str, index: int) -> OpTimes:
        key = (program, index)
        if key not in self._ops:
            self._ops[key] = self._known.times(program, index)
        return self._ops[key]

    def ops(self) -> list[OpTimes]:
        """What was measured, in the order of the first calls."""
        return list(self._ops.values())


@dataclass(frozen=True)
class LibraryRun:
    """A run of a program of a shared object."""

    begin: float
    seconds: float
    calls: Sequence[ReportedCall]


def times_of_calls(
    program: str, runs: Sequence[LibraryRun], known: KnownOps | None
) -> list[OpTimes]:
    """What was measured in runs of a shared object, in the order of the calls.

    Calls count for the ops of the flatbuffer that they are; one that is none of them is called as
    the function is.

    Args:
        program: its name.
        runs: at least one.
        known: the ops of the flatbuffer that belongs to it, if there is one.
    """
    if not any(run.calls for run in runs):
        cost = _NO_WORK if known is None else known.flatbuffer.cost(program)
        return [OpTimes(program, 0, WHOLE_PROGRAM, None, cost, spans=_spans(runs))]
    expected: list[ExpectedCall] = []
    if known is not None and isinstance(known.flatbuffer, TTNNExecutable):
        expected = expected_calls(known.flatbuffer.binary, [program])
    found: dict[tuple[str, int], OpTimes] = {}
    outside = OpTimes(program, None, OUTSIDE, None, _NO_WORK)
    for run in runs:
        for place, (call, op) in enumerate(
            zip(run.calls, ops_of_calls(expected, run.calls), strict=True)
        ):
            key = ("call", place) if op is None else ("op", op.op)
            if key not in found:
                found[key] = _times(program, call, op, known)
            found[key].add(call)
        rest = run.seconds - sum(call.seconds for call in run.calls)
        outside.spans.append((run.begin, max(rest, 0.0)))
    return [*found.values(), outside]


def _spans(runs: Iterable[LibraryRun]) -> list[tuple[float, float]]:
    return [(run.begin, run.seconds) for run in runs]


def _times(
    program: str, call: ReportedCall, op: ExpectedCall | None, known: KnownOps | None
) -> OpTimes:
    if op is None or known is None:
        return OpTimes(program, None, f"ttnn::{call.name}", None, Cost(call.moved_bytes, 0))
    return known.times(program, op.op)
