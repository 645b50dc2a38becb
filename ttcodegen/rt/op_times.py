"""Op times of flatbuffers and of ttnn calls, in the columns of tt-metal's profiler."""

from __future__ import annotations

import csv
import io
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

from xdsl.dialects.func import FuncOp

from ttcodegen.conversions.host_functions.interface import entries
from ttcodegen.conversions.host_functions.statements import Recorder, SourceFacts
from ttcodegen.cost import Cost
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.loops import WhileLoopOp
from ttcodegen.flatbuffer.modules import module_of
from ttcodegen.flatbuffer.program import LINK_BYTES, LINK_HOPS, Binary, Integer, Operation, Program
from ttcodegen.naming.values import ValueNames
from ttcodegen.numerics.execution import Observation
from ttcodegen.ops.core.calls import Argument, Call
from ttcodegen.ops.core.definition import function_of
from ttcodegen.ops.tt_lang import LIBRARY_CALL
from ttcodegen.optimizer.call import LibraryCall, call_in_file
from ttcodegen.optimizer.cost.calls import CallCost, CostModel, total_cost
from ttcodegen.optimizer.overrides.meanings import TRANSPOSED
from ttcodegen.rt.device_profile import ProgramCounts, longest_cycles
from ttcodegen.runtime.backend_reports import ReportedCall
from ttcodegen.runtime.executable import FlatbufferExecutable, TTMExecutable, TTNNExecutable
from ttcodegen.systems.cards import Performance
from ttcodegen.transforms.rewriting import body_of

# Which calls of ttnn that C++ made are which ops of a flatbuffer.
#
# The C++ may have been edited: calls that belong to no op are left over, and so are ops without
# calls.

_NAMESPACE = "ttnn::"
_MAX_DISTANCE = 16
"""Maximum distance of a call from its op's line: C++ evaluates arguments in any order."""

Shape = tuple[int, ...]
Key = tuple[str, Shape | None]


@dataclass(frozen=True)
class ExpectedCall:
    """Call that the C++ of an op makes."""

    program: str
    op: int
    """Index of the op in its program."""
    name: str
    """Function name without its namespace."""
    shape: Shape | None
    """Shape of the op's first result."""
    inner: tuple[str, ...] = ()
    """Calls whose results are arguments of this one."""

    @property
    def key(self) -> Key:
        """Key shared by a call and the op that it implements."""
        return self.name, self.shape


def expected_calls(binary: Binary, programs: Sequence[str]) -> list[ExpectedCall]:
    """ttnn calls of the C++ of some programs, in the order of their ops.

    Raises:
        CompileError: if the file has unknown ops or attributes.
    """
    module = module_of(binary)
    facts = SourceFacts(binary.release)
    facts.tuning.collect(entries(module))
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    return [
        call
        for name in programs
        for call in _calls_of(binary.program(name), functions[name], facts)
    ]


def _calls_of(program: Program, function: FuncOp, facts: SourceFacts) -> Iterator[ExpectedCall]:
    ops = list(body_of(function).ops)[:-1]
    places = {op: index for index, op in enumerate(ops)}
    loops = {op.callee.string_value(): "" for op in ops if isinstance(op, WhileLoopOp)}
    recorder = Recorder(facts, ValueNames([], {}, {}, {}), loops)
    for statement in recorder.record(ops):
        names = list(_called(statement.call, set()))
        op = statement.op
        if isinstance(op, CatalogueOp) and op.name == LIBRARY_CALL and len(op.results) == 1:
            # By way of a function of the project.
            names.append(function_of(op.definition.short_name))
        if not names:
            continue
        place = places[statement.op]
        results = program.operations[place].results
        shape = program.tensors[results[0]].type.shape if results else None
        yield ExpectedCall(program.name, place, names[-1], shape, tuple(names[:-1]))


def _called(argument: Argument, seen: set[int]) -> Iterator[str]:
    """ttnn functions that an expression calls, arguments first."""
    if not isinstance(argument, Call) or id(argument) in seen:
        return
    seen.add(id(argument))
    for inner in argument.arguments:
        yield from _called(inner, seen)
    makes_value = argument.callee == argument.type
    if argument.form == "call" and argument.callee.startswith(_NAMESPACE) and not makes_value:
        yield argument.callee.rpartition("::")[2]


def ops_of_calls(
    expected: Sequence[ExpectedCall], calls: Sequence[ReportedCall]
) -> list[ExpectedCall | None]:
    """Expected call of each reported one; None if it matches none.

    Arguments' calls map to the enclosing expected call.
    """
    keys = [(call.name, call.results[0].shape if call.results else None) for call in calls]
    found: dict[int, ExpectedCall] = {}
    rest: list[tuple[int, ExpectedCall]] = []
    place = 0
    for each, call in zip(expected, _align([each.key for each in expected], keys), strict=True):
        if call is None:
            rest.append((place, each))
        else:
            found[call] = each
            place = call + 1
    left: dict[Key, deque[int]] = defaultdict(deque)
    for call, key in enumerate(keys):
        if call not in found:
            left[key].append(call)
    for place, each in rest:
        near = [call for call in left[each.key] if abs(call - place) <= _MAX_DISTANCE]
        if near:
            left[each.key].remove(near[0])
            found[near[0]] = each
    ops = [found.get(call) for call in range(len(calls))]
    for call, each in found.items():
        _assign_inner_calls(each, call, keys, ops)
    return ops


def _assign_inner_calls(
    outer: ExpectedCall, call: int, keys: Sequence[Key], ops: list[ExpectedCall | None]
) -> None:
    """Assigns preceding calls that are arguments of a call to the same op."""
    wanted = list(outer.inner)
    place = call - 1
    while wanted and place >= 0 and call - place <= _MAX_DISTANCE:
        if ops[place] is None and keys[place][0] in wanted:
            wanted.remove(keys[place][0])
            ops[place] = outer
        place -= 1


def _align(expected: Sequence[Key], found: Sequence[Key]) -> list[int | None]:
    """Index in `found` of each expected key, aligned in order."""
    begin = 0
    shorter = min(len(expected), len(found))
    while begin < shorter and expected[begin] == found[begin]:
        begin += 1
    end = 0
    while end < shorter - begin and expected[-1 - end] == found[-1 - end]:
        end += 1
    places: list[int | None] = [None] * len(expected)
    for index in range(begin):
        places[index] = index
    for index in range(1, end + 1):
        places[-index] = len(found) - index
    first, second = expected[begin : len(expected) - end], found[begin : len(found) - end]
    # The remaining middle is short unless much was edited.
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    for block in matcher.get_matching_blocks():
        for offset in range(block.size):
            places[begin + block.a + offset] = begin + block.b + offset
    return places


# How long ops took: those of a flatbuffer in numpy, and the calls of a shared object on the CPU
# backend.

WHOLE_PROGRAM = "(whole program)"
"""Row name of a program whose calls are not reported."""
OUTSIDE = "(outside of the calls)"
"""Row name of a program's remaining time: its own code and host-device transfers."""
_NO_WORK = Cost(0, 0)


@dataclass
class OpTimes:
    """Measurements of an op."""

    program: str
    index: int | None
    """Index in the flatbuffer, None for rows that are no op."""
    op: str
    location: str | None
    cost: Cost
    """Cost of one call."""
    estimate: CallCost | None = None
    """Estimate of the cost model for one ttnn call."""
    library_call: LibraryCall | None = None
    """The ttnn call."""
    fidelity: str | None = None
    """Fidelity of a kernel program."""
    counts: ProgramCounts | None = None
    """Counts of the emulated device for one call of a device program."""
    spans: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    """Begin and duration of each call, in seconds."""
    processor_seconds: float | None = None
    """Processor time of all calls and threads, if measured."""

    @property
    def seconds(self) -> float:
        """Total time of all calls."""
        return sum(duration for _, duration in self.spans)

    def add(self, call: ReportedCall) -> None:
        """Counts a call."""
        self.spans.append((call.begin, call.seconds))
        self.processor_seconds = (self.processor_seconds or 0.0) + call.processor_seconds


class KnownOps:
    """Static facts of a flatbuffer's ops.

    Args:
        flatbuffer: the file.
        model: cost model of the card.
        edited: edited calls of the project's C++, by program and index: several in place of others.
    """

    def __init__(
        self,
        flatbuffer: FlatbufferExecutable,
        model: CostModel,
        edited: Mapping[tuple[str, int], Sequence[LibraryCall]] | None = None,
    ) -> None:
        self.flatbuffer = flatbuffer
        self._model = model
        self._edited = edited or {}
        self._functions = {f.name: f for f in flatbuffer.functions}
        self.operations = {f.name: flatbuffer.operations(f) for f in flatbuffer.functions}

    def times(self, program: str, index: int) -> OpTimes:
        """New measurement of an op."""
        operation = self.operations[program][index]
        name, cost = self.flatbuffer.work(program, operation)
        estimate = call = None
        if isinstance(self.flatbuffer, TTNNExecutable) and operation.callee is None:
            generated = call_in_file(self._functions[program], operation)
            calls = self._edited.get((program, index), (generated,))
            costs = [self._model.cost(each) for each in calls]
            # The slowest call stands for all.
            call = max(zip(calls, costs, strict=True), key=lambda each: each[1].seconds)[0]
            estimate = costs[0] if len(costs) == 1 else total_cost(costs)
        if isinstance(self.flatbuffer, TTMExecutable) and operation.callee is not None:
            estimate = self._exchange(operation)
        times = OpTimes(program, index, name, operation.location, cost, estimate, call)
        if isinstance(self.flatbuffer, TTMExecutable):
            launched = self.flatbuffer.launched(operation)
            times.fidelity = None if launched is None else launched.fidelity
        return times

    def made_calls(self, program: str) -> Mapping[int, Sequence[str]]:
        """Functions that the C++ calls for the edited ops of a program, by index."""
        return {
            index: [
                "transpose" if TRANSPOSED in each.attributes else function_of(each.name)
                for each in calls
            ]
            for (name, index), calls in self._edited.items()
            if name == program
        }

    def once(self, program: str) -> list[OpTimes]:
        """Ops of a program with zero time, except deallocations."""
        found: list[OpTimes] = []
        for index, operation in enumerate(self.operations[program]):
            if operation.name != "ttnn.deallocate":
                found.append(self.times(program, index))
                found[-1].spans.append((0.0, 0.0))
        return found

    def _exchange(self, operation: Operation) -> CallCost | None:
        """Estimate of an exchange between devices, None if the CPU performs it."""
        numbers = {
            attribute.name: attribute.value.value
            for attribute in operation.attributes
            if isinstance(attribute.value, Integer)
        }
        if LINK_BYTES not in numbers:
            return None
        return self._model.exchange(numbers[LINK_BYTES], numbers.get(LINK_HOPS, 0))


class OpClock:
    """Times the ops of a flatbuffer run between observations."""

    def __init__(self, known: KnownOps) -> None:
        self._known = known
        self._ops: dict[tuple[str, int], OpTimes] = {}
        self._indices: dict[int, int] = {}
        self._mark = 0.0

    def start(self) -> None:
        """Starts a run, whose step objects are new."""
        self._indices.clear()
        self._mark = time.perf_counter()

    def observe(self, observation: Observation) -> None:
        """Ends an op; steps inside a device program count for the program."""
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
        # Exclude the time of the observer itself.
        self._mark = time.perf_counter()

    def _times(self, program: str, index: int) -> OpTimes:
        key = (program, index)
        if key not in self._ops:
            self._ops[key] = self._known.times(program, index)
        return self._ops[key]

    def ops(self) -> list[OpTimes]:
        """Measurements in order of first calls."""
        return list(self._ops.values())


@dataclass(frozen=True)
class LibraryRun:
    """Run of a program of a shared object."""

    begin: float
    seconds: float
    calls: Sequence[ReportedCall]


def times_of_calls(
    program: str, runs: Sequence[LibraryRun], known: KnownOps | None
) -> list[OpTimes]:
    """Measurements of runs of a shared object, in the order of the calls.

    Calls are attributed to the flatbuffer's ops; others have the function's name.

    Args:
        program: its name.
        runs: at least one.
        known: ops of the flatbuffer, if there is one.
    """
    if not any(run.calls for run in runs):
        cost = _NO_WORK if known is None else known.flatbuffer.cost(program)
        return [OpTimes(program, 0, WHOLE_PROGRAM, None, cost, spans=_spans(runs))]
    expected: list[ExpectedCall] = []
    if known is not None and isinstance(known.flatbuffer, TTNNExecutable):
        made = known.made_calls(program)
        expected = [
            replace(each, name=made[each.op][-1], inner=tuple(made[each.op][:-1]))
            if each.op in made
            else each
            for each in expected_calls(known.flatbuffer.binary, [program])
        ]
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


# The table of op times in the columns of tt-metal's profiler, for tools that read its reports.
#
# Source: the header of tools/tracy/process_ops_logs.py in tt-metal; `LOC` is what ttrt adds to
# it.

COLUMNS: tuple[str, ...] = (
    "OP CODE",
    "OP TYPE",
    "GLOBAL CALL COUNT",
    "DEVICE ID",
    "DEVICE ARCH",
    "MATH FIDELITY",
    "CORE COUNT",
    "AVAILABLE WORKER CORE COUNT",
    "HOST START TS",
    "HOST END TS",
    "HOST DURATION [ns]",
    "OP TO OP LATENCY [ns]",
    "DEVICE FW DURATION [ns]",
    "DEVICE KERNEL DURATION [ns]",
    "DEVICE BRISC KERNEL DURATION [ns]",
    "DEVICE NCRISC KERNEL DURATION [ns]",
    "DEVICE TRISC0 KERNEL DURATION [ns]",
    "DEVICE TRISC1 KERNEL DURATION [ns]",
    "DEVICE TRISC2 KERNEL DURATION [ns]",
    "COMPUTE KERNEL SOURCE",
    "DATA MOVEMENT KERNEL SOURCE",
    "PM IDEAL [ns]",
    "PM COMPUTE [ns]",
    "PM BANDWIDTH [ns]",
    "NOC UTIL (%)",
    "DRAM BW UTIL (%)",
    "LOC",
)
"""Columns in the profiler's order.

Those that only a card can fill are empty, as are the device's if no kernels ran.
"""


@dataclass(frozen=True)
class OpCall:
    """Call of an op: its begin, its duration on this machine, and its estimate for a card."""

    name: str
    location: str | None
    begin: float
    """Begin in seconds of `time.perf_counter`."""
    duration: float
    card_compute: float
    """Lower bound of the card's arithmetic time in seconds."""
    card_memory: float
    """Lower bound of the card's memory time in seconds."""
    device: DeviceCall | None = None
    """Emulated device's counts, for device programs."""


@dataclass(frozen=True)
class DeviceCall:
    """Run of a kernel program."""

    counts: ProgramCounts
    fidelity: str
    speed: Performance

    def columns(self) -> dict[str, object]:
        """Columns that the counts fill."""
        cycles = longest_cycles(self.counts, self.fidelity, self.speed)
        longest = max(cycles.values(), default=0)
        durations = {
            f"DEVICE {name.replace('_', '')} KERNEL DURATION [ns]": self._time(cycles[name])
            for name in cycles
        }
        total, seconds = self.counts.total, longest / self.speed.clock
        moved = total["noc_read_bytes"] + total["noc_written_bytes"]
        dram = total["dram_read_bytes"] + total["dram_written_bytes"]
        # Each core has two NoCs.
        room = 2 * self.counts.cores * self.speed.noc_bytes * longest
        return {
            "OP TYPE": "tt_dnn_device",
            "MATH FIDELITY": self.fidelity,
            "CORE COUNT": self.counts.cores,
            "DEVICE FW DURATION [ns]": self._time(longest),
            "DEVICE KERNEL DURATION [ns]": self._time(longest),
            **durations,
            "COMPUTE KERNEL SOURCE": self.counts.sources(computes=True),
            "DATA MOVEMENT KERNEL SOURCE": self.counts.sources(computes=False),
            "NOC UTIL (%)": _percentage(moved, room),
            "DRAM BW UTIL (%)": _percentage(dram, self.speed.dram_bandwidth * seconds),
        }

    def _time(self, cycles: int) -> int:
        return _nanoseconds(cycles / self.speed.clock)


def _percentage(part: float, whole: float) -> object:
    return round(100 * part / whole, 1) if whole else ""


def profiler_table(calls: Sequence[OpCall], arch: str, cores: int) -> str:
    """Text of the table: a row per call, in order of begin."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    end: int | None = None
    for number, call in enumerate(sorted(calls, key=lambda call: call.begin), 1):
        start = _nanoseconds(call.begin)
        row: Mapping[str, object] = {
            "OP CODE": call.name,
            "OP TYPE": "host",
            "GLOBAL CALL COUNT": number,
            "DEVICE ID": 0,
            "DEVICE ARCH": arch,
            "AVAILABLE WORKER CORE COUNT": cores,
            "HOST START TS": start,
            "HOST END TS": start + _nanoseconds(call.duration),
            "HOST DURATION [ns]": _nanoseconds(call.duration),
            "OP TO OP LATENCY [ns]": "" if end is None else max(start - end, 0),
            "PM IDEAL [ns]": _nanoseconds(max(call.card_compute, call.card_memory)),
            "PM COMPUTE [ns]": _nanoseconds(call.card_compute),
            "PM BANDWIDTH [ns]": _nanoseconds(call.card_memory),
            "LOC": call.location or "",
            **({} if call.device is None else call.device.columns()),
        }
        writer.writerow(row)
        end = start + _nanoseconds(call.duration)
    return text.getvalue()


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)
