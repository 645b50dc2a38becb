"""Values of a run's ops, and matching of two runs' ops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

import numpy as np

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.numerics.interpreter import OpEvent
from ttcodegen.rt.op_times import expected_calls, ops_of_calls
from ttcodegen.runtime.backend_reports import CallResult, ReportedCall
from ttcodegen.runtime.executable import (
    FlatbufferExecutable,
    TTNNExecutable,
)


@dataclass(frozen=True)
class OpValues:
    """Values of an op."""

    name: str
    """Op (`ttnn.matmul`), or function of a call without op (`ttnn::matmul`)."""
    function: str | None
    """Function that the op's C++ calls, if it is a call."""
    index: int
    """Index in the program, or among the calls."""
    location: str | None
    shapes: tuple[tuple[int, ...], ...]
    data_types: tuple[DataType, ...]
    load: Callable[[], Sequence[np.ndarray]]
    """Loads the results, which are in files for C++."""


def values_of_events(
    events: Sequence[OpEvent], flatbuffer: FlatbufferExecutable | None
) -> list[OpValues]:
    """Op values of a flatbuffer run.

    Args:
        events: observed ops.
        flatbuffer: the executable, to also determine the functions that the ops' C++ calls.

    Raises:
        CompileError: if these are requested and an op has no C++ call.
    """
    functions: dict[tuple[str, int], str] = {}
    if isinstance(flatbuffer, TTNNExecutable):
        programs = [program.name for program in flatbuffer.functions]
        calls = expected_calls(flatbuffer.binary, programs)
        functions = {(call.program, call.op): call.name for call in calls}
    return [
        OpValues(
            event.name,
            functions.get((event.program, event.index)),
            event.index,
            event.location,
            tuple(output.shape for output in event.outputs),
            tuple(_data_type(output) for output in event.outputs),
            lambda event=event: event.outputs,
        )
        for event in events
    ]


def values_of_calls(
    calls: Sequence[ReportedCall], flatbuffer: FlatbufferExecutable | None, program: str
) -> list[OpValues]:
    """Op values of a run of C++.

    Args:
        calls: calls of the run, const-eval included.
        flatbuffer: the flatbuffer with the ops, if there is one.
        program: name of the program.
    """
    found = [
        OpValues(
            f"ttnn::{call.name}",
            call.name,
            index,
            None,
            tuple(_stored_shape(result) for result in call.results),
            tuple(DataType[result.data_type] for result in call.results),
            lambda call=call: [result.elements() for result in call.results],
        )
        for index, call in enumerate(calls)
    ]
    if not isinstance(flatbuffer, TTNNExecutable):
        return found
    functions = {function.name: function for function in flatbuffer.functions}
    if program not in functions:
        return found
    called = [op.callee for op in functions[program].operations if op.callee in functions]
    expected = expected_calls(flatbuffer.binary, [*dict.fromkeys(called), program])
    for index, op in enumerate(ops_of_calls(expected, calls)):
        if op is not None:
            operation = functions[op.program].operations[op.op]
            found[index] = replace(
                found[index], name=operation.name, index=op.op, location=operation.location
            )
    return found


def _stored_shape(result: CallResult) -> tuple[int, ...]:
    """Shape of the elements in the file, with a leading device dimension on a mesh."""
    return result.shape if result.devices is None else (result.devices, *result.shape)


def _data_type(array: np.ndarray) -> DataType:
    if array.dtype.kind in "biu":
        return DataType.INT32
    return DataType.FLOAT32 if array.dtype == np.float32 else DataType.BFLOAT16


@dataclass(frozen=True)
class Pair:
    """Op that two runs have in common."""

    first: OpValues
    second: OpValues
    after_first: Sequence[OpValues]
    after_second: Sequence[OpValues]
    """Following ops of one side only; after a fusion, the last one equals the other side's op."""


@dataclass(frozen=True)
class SideBySide:
    """Ops of two runs."""

    common: Sequence[Pair]
    """Matching ops in order, with results of the same shapes."""
    only_first: Sequence[OpValues]
    only_second: Sequence[OpValues]


def side_by_side(
    first: Sequence[OpValues], second: Sequence[OpValues], *, by_function: bool
) -> SideBySide:
    """Matches the ops of two runs.

    Args:
        first: ops of one run.
        second: ops of the other.
        by_function: whether to match by called function and skip ops without a call; else by name.
            Ops without results are skipped.
    """

    def key(op: OpValues) -> tuple[str, tuple[tuple[int, ...], ...]]:
        return (op.function or "") if by_function else op.name, op.shapes[:1]

    def is_compared(op: OpValues) -> bool:
        return bool(op.shapes) and (op.function is not None or not by_function)

    ours = [op for op in first if is_compared(op)]
    others = [op for op in second if is_compared(op)]
    matcher = SequenceMatcher(
        None, [key(op) for op in ours], [key(op) for op in others], autojunk=False
    )
    places = [
        (block.a + offset, block.b + offset)
        for block in matcher.get_matching_blocks()
        for offset in range(block.size)
    ]
    known, known_others = {a for a, _ in places}, {b for _, b in places}
    return SideBySide(
        [
            Pair(
                ours[a],
                others[b],
                _alone_after(a, ours, known),
                _alone_after(b, others, known_others),
            )
            for a, b in places
        ],
        [op for index, op in enumerate(ours) if index not in known],
        [op for index, op in enumerate(others) if index not in known_others],
    )


def _alone_after(index: int, ops: Sequence[OpValues], known: Collection[int]) -> Sequence[OpValues]:
    end = index + 1
    while end < len(ops) and end not in known:
        end += 1
    return ops[index + 1 : end]
