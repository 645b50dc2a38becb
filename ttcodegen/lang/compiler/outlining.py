"""Lifting of uniform operations to functions of whole tensors.

The simulator records what the kernels write into each part of a tensor. If all parts are computed
by the same expression, from the same parts of other tensors or, in matmuls and reductions, from
parts that together cover whole rows or columns, then the tensor is a function of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.lang.compiler.tensor_functions import TENSOR_FUNCTIONS, TensorText, Value
from ttcodegen.lang.simulator.context import Launch
from ttcodegen.lang.simulator.recording import (
    RecordedSlice,
    RecordedValue,
    RecordedWrite,
    recording_of,
)
from ttcodegen.lang.simulator.shapes import Shape
from ttcodegen.lang.simulator.tensors import Tensor

SUMS = ("+", "+=")
IN_STEPS = {"@": SUMS, "reduce_sum": SUMS, "reduce_max": ("ttl.math.max",)}
"""Reductions that loops compute step by step, with the ops that combine the steps."""
LEAST = -1e30
"""Threshold at or below which the initial value of a maximum counts as minus infinity."""


class NotRegularError(Exception):
    """Raised if an operation is not a function of whole tensors; the message says why."""


@dataclass(frozen=True)
class _Frame:
    """Positions of corresponding values of all nodes and steps in a whole tensor."""

    extents: Shape
    """Shape of the whole tensor, in elements."""
    origins: tuple[Shape, ...]
    """Origin of each value, in tiles along tiled dimensions."""

    def at(self, axes: Sequence[int]) -> _Frame:
        """The frame of a transposed tensor, or of one with a subset of the dimensions."""
        origins = tuple(tuple(origin[axis] for axis in axes) for origin in self.origins)
        return _Frame(tuple(self.extents[axis] for axis in axes), origins)

    def changed(self, axis: int, extent: int, starts: Sequence[int]) -> _Frame:
        """The frame with another extent and other starts along one dimension."""
        origins = tuple(
            (*origin[:axis], start, *origin[axis + 1 :])
            for origin, start in zip(self.origins, starts, strict=True)
        )
        return _Frame((*self.extents[:axis], extent, *self.extents[axis + 1 :]), origins)


def whole_function(
    launch: Launch, name: str, inputs: dict[str, Tensor], outputs: dict[str, Tensor]
) -> str:
    """Returns the text of a module with the operation as a function of whole tensors.

    Args:
        launch: the operation, after it ran and was recorded.
        name: name of the function.
        inputs: tensors that the operation reads, by their names in the function.
        outputs: tensors that it writes.

    Raises:
        NotRegularError: if the operation is not a function of whole tensors.
    """
    return _Lifting(launch, inputs, outputs).module(name)


class _Lifting:
    """Lifts the recorded values of a launch to ops on whole tensors."""

    def __init__(
        self, launch: Launch, inputs: dict[str, Tensor], outputs: dict[str, Tensor]
    ) -> None:
        self.launch = launch
        self.inputs, self.outputs = inputs, outputs
        tensors = [*inputs.values(), *outputs.values()]
        types = {tensor.data_type for tensor in tensors}
        if not types <= {DataType.FLOAT32, DataType.BFLOAT16} and types != {DataType.INT32}:
            raise NotRegularError(
                "it has tensors of other types than float32 and bfloat16, or than int32"
            )
        element = next(iter(types)) if len(types) == 1 else DataType.FLOAT32
        self.text = TensorText(element.mlir)
        self._arguments: dict[int, Value] = {}
        self._known: dict[tuple[object, ...], Value] = {}
        self._kept_alive: list[object] = []

    def module(self, function: str) -> str:
        """Text of the module."""
        text = self.text
        arguments = [
            f"%{name}: {text.type(tensor.shape, tensor.data_type.mlir)}"
            for name, tensor in self.inputs.items()
        ]
        for name, tensor in self.inputs.items():
            given = Value(f"%{name}", tuple(tensor.shape))
            given = text.cast(given, tensor.data_type.mlir, text.element)
            self._arguments[id(tensor)] = text.reshape(given, _extents(tensor))
        results: list[str] = []
        types: list[str] = []
        for tensor in self.outputs.values():
            found = text.reshape(self._output(tensor), tensor.shape)
            results.append(text.cast(found, text.element, tensor.data_type.mlir).name)
            types.append(text.type(tensor.shape, tensor.data_type.mlir))
        lines = [
            f"func.func @{function}({', '.join(arguments)}) -> ({', '.join(types)}) {{",
            *(f"  {line}" for line in text.lines),
            f"  return {', '.join(results)} : {', '.join(types)}",
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _output(self, tensor: Tensor) -> Value:
        recording = recording_of(self.launch)
        writes = recording.writes.get(id(tensor), []) if recording is not None else []
        if recording is not None and recording.reads_elements:
            raise NotRegularError("its kernels read single elements")
        _check_coverage(self.launch, tensor, writes)
        values = [write.value for write in writes]
        known = [each for each in values if each is not None]
        if len(known) != len(values):
            raise NotRegularError("it writes what it did not compute from tensors")
        if any(len(write.axes) != len(tensor.units) for write in writes):
            raise NotRegularError("its blocks have fewer dimensions than its tensors")
        frame = _Frame(_extents(tensor), tuple(write.part.starts for write in writes))
        return self.text.broadcast(self._lift(known, frame), frame.extents)

    # Values

    def _lift(self, values: Sequence[RecordedValue], frame: _Frame) -> Value:
        """Returns the whole tensor that values are parts of.

        Along a dimension in which it is constant the tensor may have size 1.
        """
        key = (*map(id, values), frame)
        if key not in self._known:
            self._known[key] = self._lift_uncached(values, frame)
            self._kept_alive.append(values)
        return self._known[key]

    def _lift_uncached(self, values: Sequence[RecordedValue], frame: _Frame) -> Value:
        """Lifts corresponding values of all nodes and steps, which must be computed alike."""
        first = values[0]
        for kind, joining in IN_STEPS.items():
            if first.kind == kind or first.kind in joining:
                terms = [list(_terms(value, joining)) for value in values]
                if any(term.kind == kind for term in terms[0]):
                    return self._lift_accumulation(terms, kind, frame)
        if any(
            (each.kind, each.details, len(each.operands))
            != (first.kind, first.details, len(first.operands))
            for each in values
        ):
            raise NotRegularError("its nodes or steps compute in different ways")
        match first.kind:
            case "slice":
                return self._slice(values, frame)
            case "fill":
                (number,) = first.details
                assert isinstance(number, float)
                return self.text.full(number, frame.extents)
            case "broadcast":
                for axis in _axes(first):
                    frame = frame.changed(axis, 1, [0] * len(values))
                return self._operand(values, 0, frame)
            case "transpose":
                transposed = self.text.broadcast(
                    self._operand(values, 0, frame.at((1, 0))), frame.extents[::-1]
                )
                attributes = "dim0 = 0 : si32, dim1 = 1 : si32"
                return self.text.op("transpose", [transposed], frame.extents, attributes)
            case "reshape":
                return self._reshaped(values, frame)
            case kind if kind in TENSOR_FUNCTIONS:
                parts = [self._operand(values, n, frame) for n in range(len(first.operands))]
                return TENSOR_FUNCTIONS[kind](self.text, *parts, *first.details)
            case kind:
                raise NotRegularError(f"TTIR has no op for {kind}")

    def _operand(self, values: Sequence[RecordedValue], number: int, frame: _Frame) -> Value:
        return self._lift([value.operands[number] for value in values], frame)

    def _slice(self, values: Sequence[RecordedValue], frame: _Frame) -> Value:
        """Lifts slices at the positions of the frame to the function argument that they cover."""
        slices = [value for value in values if isinstance(value, RecordedSlice)]
        tensor = slices[0].tensor
        assert tensor is not None
        if any(each.tensor is not tensor for each in slices):
            raise NotRegularError("its nodes or steps read different tensors")
        extents = _extents(tensor)
        for each, origin in zip(slices, frame.origins, strict=True):
            if len(each.axes) != len(extents):
                raise NotRegularError("its blocks have fewer dimensions than its tensors")
            if each.starts != origin:
                raise NotRegularError("it reads tensors at other positions than it writes")
        if extents != frame.extents:
            raise NotRegularError("it reads a part of a tensor only")
        if id(tensor) not in self._arguments:
            raise NotRegularError("it reads what it writes")
        return self._arguments[id(tensor)]

    def _reshaped(self, values: Sequence[RecordedValue], frame: _Frame) -> Value:
        first = values[0]
        kept = _axes(first)
        before = first.operands[0].shape
        if len(before) > len(first.shape):
            found = self._operand(values, 0, _with_ones(frame, len(before), kept))
            return self.text.reshape(found, tuple(found.shape[axis] for axis in kept))
        if any(size != 1 for axis, size in enumerate(frame.extents) if axis not in kept):
            raise NotRegularError("it adds a dimension that is not 1")
        found = self._operand(values, 0, frame.at(kept))
        sizes = dict(zip(kept, found.shape, strict=True))
        return self.text.reshape(found, [sizes.get(a, 1) for a in range(len(first.shape))])

    # Matmuls and reductions

    def _lift_accumulation(
        self, terms: Sequence[Sequence[RecordedValue]], kind: str, frame: _Frame
    ) -> Value:
        """Lifts values that loops accumulate step by step, by sum or maximum."""
        text, found = self.text, list[Value]()
        groups = [_grouped_by_loop(each, kind) for each in terms]
        if any(group.keys() != groups[0].keys() for group in groups):
            raise NotRegularError("its nodes or steps compute in different ways")
        for signature in groups[0]:
            members = [group[signature] for group in groups]
            if members[0][0].kind == kind:
                found.append(self._lift_steps(members, frame))
            elif any(len(each) != len(members[0]) for each in members):
                raise NotRegularError("its nodes add up different numbers of terms")
            else:
                found += [self._lift(term, frame) for term in zip(*members, strict=True)]
        name = "maximum" if kind == "reduce_max" else "add"
        total = found[0]
        for each in found[1:]:
            total = text.elementwise(name, total, each)
        return total

    def _lift_steps(self, members: Sequence[Sequence[RecordedValue]], frame: _Frame) -> Value:
        """Lifts the steps of matmul or reduction loops to one op over the whole extent."""
        first = members[0][0]
        origins = [o for each, o in zip(members, frame.origins, strict=True) for _ in each]
        steps = [step for each in members for step in each]
        placed = replace(frame, origins=tuple(origins))
        if first.kind == "@":
            rank = len(first.shape)
            size, starts = _extent_and_starts(steps, rank - 1, members)
            left = self._operand(steps, 0, placed.changed(rank - 1, size, starts))
            right = self._operand(steps, 1, placed.changed(rank - 2, size, starts))
            *outer, rows, columns = frame.extents
            left = self.text.broadcast(left, (*outer, rows, size))
            right = self.text.broadcast(right, (*outer, size, columns))
            return self.text.op("matmul", [left, right], frame.extents)
        axes = _axes(first)
        for axis in axes:
            size, starts = _extent_and_starts(steps, axis, members)
            placed = placed.changed(axis, size, starts)
        read = self._operand(steps, 0, placed)
        read = self.text.broadcast(read, placed.extents)
        shape = tuple(1 if axis in axes else size for axis, size in enumerate(placed.extents))
        dims = ", ".join(f"{axis} : i32" for axis in axes)
        name = {"reduce_sum": "sum", "reduce_max": "max"}[first.kind]
        return self.text.op(name, [read], shape, f"dim_arg = [{dims}], keep_dim = true")


def _check_coverage(launch: Launch, tensor: Tensor, writes: Sequence[RecordedWrite]) -> None:
    """Raises NotRegularError unless the written parts cover a tensor without overlaps.

    Several nodes may write the same part.
    """
    written = launch.written.get(id(tensor))
    parts = {(write.part.starts, write.part.sizes) for write in writes}
    volume = sum(prod(sizes) for _, sizes in parts)
    if written is None or not written.is_all or volume != prod(tensor.units):
        raise NotRegularError("it does not write each part of its results once")


def _extents(tensor: Tensor) -> Shape:
    """Shape of a tiled tensor, padded to at least two dimensions.

    Raises:
        NotRegularError: if the tensor is row-major.
    """
    if not tensor.is_tiled:
        raise NotRegularError("it has row-major tensors")
    shape = tuple(tensor.shape)
    return (1,) * (2 - len(shape)) + shape


def _axes(value: RecordedValue) -> tuple[int, ...]:
    return tuple(int(str(axis)) for axis in value.details)


def _terms(value: RecordedValue, joining: Sequence[str]) -> Iterator[RecordedValue]:
    """Yields the terms of a sum or maximum from left to right, without neutral initial values."""
    pending = [value]
    while pending:
        each = pending.pop()
        if each.kind in joining:
            pending += reversed(each.operands)
        elif not _is_neutral(each, is_sum="+" in joining):
            yield each


def _is_neutral(value: RecordedValue, *, is_sum: bool) -> bool:
    """True if a term is the neutral initial value of a sum or maximum."""
    if value.kind != "fill":
        return False
    (number,) = value.details
    assert isinstance(number, float)
    return number == 0.0 if is_sum else number <= LEAST


def _grouped_by_loop(
    terms: Sequence[RecordedValue], kind: str
) -> dict[tuple[object, ...], list[RecordedValue]]:
    """Groups terms: steps of the same loop, and other terms by kind."""
    found: dict[tuple[object, ...], list[RecordedValue]] = {}
    for term in terms:
        key = (kind, term.details, *_tensor_ids(term)) if term.kind == kind else (term.kind,)
        found.setdefault(key, []).append(term)
    return found


def _tensor_ids(value: RecordedValue) -> Iterator[int]:
    """Yields the identities of the tensors that a value is computed from, each once per slice."""
    seen: set[int] = set()
    pending = [value]
    while pending:
        each = pending.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, RecordedSlice):
            yield id(each.tensor)
        pending += reversed(each.operands)


def _extent_and_starts(
    steps: Sequence[RecordedValue], axis: int, members: Sequence[Sequence[RecordedValue]]
) -> tuple[int, list[int]]:
    """Total extent along a dimension of the first operands of loop steps, and the start of each.

    Raises:
        NotRegularError: if the steps of a value do not cover the dimension exactly once.
    """
    starts: list[int] = []
    size = steps[0].operands[0].shape[axis]
    for step in steps:
        operand = step.operands[0]
        if operand.shape[axis] != size:
            raise NotRegularError("the steps of its loops have different sizes")
        starts.append(_start(operand, axis) or 0)
    count = len(members[0])
    expected = [size * number for number in range(count)]
    position = 0
    for each in members:
        own = sorted(starts[position : position + len(each)])
        if own != expected:
            raise NotRegularError("its loops do not go over whole rows or columns")
        position += len(each)
    unit = TILE_SIDE if axis >= len(steps[0].operands[0].shape) - 2 else 1
    return size * count * unit, starts


def _start(value: RecordedValue, axis: int) -> int | None:
    """First known start along a dimension of the slices that a value is computed from."""
    match value:
        case RecordedSlice():
            return value.starts[value.axes[axis]]
        case RecordedValue("broadcast" | "reduce_sum" | "reduce_max") if axis in _axes(value):
            return None
        case RecordedValue("transpose"):
            return _start(value.operands[0], 1 - axis)
        case RecordedValue("@"):
            is_column = axis == len(value.shape) - 1
            return _start(value.operands[1 if is_column else 0], axis)
        case RecordedValue("reshape"):
            kept, before = _axes(value), value.operands[0].shape
            if len(before) > len(value.shape):
                return _start(value.operands[0], kept[axis])
            return _start(value.operands[0], kept.index(axis)) if axis in kept else None
        case _:
            found = (_start(each, axis) for each in value.operands)
            return next((each for each in found if each is not None), None)


def _with_ones(frame: _Frame, rank: int, kept: Sequence[int]) -> _Frame:
    """A frame with additional dimensions of size 1."""
    indices = {axis: number for number, axis in enumerate(kept)}
    extents = tuple(frame.extents[indices[a]] if a in indices else 1 for a in range(rank))
    origins = tuple(
        tuple(origin[indices[a]] if a in indices else 0 for a in range(rank))
        for origin in frame.origins
    )
    return _Frame(extents, origins)
