"""Slices with static bounds."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.attribute_kinds import INTEGER, INTEGERS
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import CppCalls, Text, output_memory, small_vector_text, trimmed
from ttcodegen.ops.core.definition import (
    Call,
    OperandSpec,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    register,
)
from ttcodegen.ops.core.dimensions import (
    Dimensions,
    Shape,
    expect_element,
    expect_shape,
    normalized_dim,
    of_part,
)
from ttcodegen.ops.core.lowering import cpu_call
from ttcodegen.ops.core.traits import CallKind, Trait, no_flops
from ttcodegen.ops.indexing.dynamic_slicing import reversed_along
from ttcodegen.ops.movement.data_movement import MOVED, MOVEMENT

# slice_static


def _from_the_front(indices: Sequence[int], shape: Sequence[int]) -> list[int]:
    return [
        index + size if index < 0 else index for index, size in zip(indices, shape, strict=True)
    ]


def _slices(call: Call) -> tuple[slice, ...]:
    shape = call.array("input").shape
    begins, ends = (_from_the_front(call[name], shape) for name in ("begins", "ends"))
    return tuple(map(slice, begins, ends, call["step"]))


def _slice_bounds(op: CatalogueOp) -> tuple[list[int], list[int], list[int]]:
    """Returns begins, ends and steps, counted from the front."""
    shape = op.shape("input")
    bounds = [op.parameter(name) for name in ("begins", "ends", "step")]
    for name, values in zip(("begins", "ends", "step"), bounds, strict=True):
        if len(values) != len(shape):
            raise VerifyException(
                f"{op.name}: expected {len(shape)} {name} for a tensor of shape {shape}, "
                f"found {len(values)}"
            )
    return _from_the_front(bounds[0], shape), _from_the_front(bounds[1], shape), bounds[2]


def _verify_slice(op: CatalogueOp) -> None:
    """Begins and ends are in range, no step is 0 or leads away from the end, and the result has the
    selected elements.
    """
    shape = op.shape("input")
    begins, ends, steps = _slice_bounds(op)
    for axis, (begin, end, step) in enumerate(zip(begins, ends, steps, strict=True)):
        if step == 0 or not 0 <= begin <= shape[axis] or not 0 <= end <= shape[axis]:
            raise VerifyException(
                f"{op.name}: {begin}:{end}:{step} is out of range in dimension {axis} of {shape}"
            )
        if (end - begin) * step < 0:
            side = "beyond" if step > 0 else "before"
            raise VerifyException(
                f"{op.name}: {begin}:{end}:{step} begins {side} its end in dimension {axis} of "
                f"{shape}"
            )
    expect_shape(
        op,
        [len(range(b, e, s)) for b, e, s in zip(begins, ends, steps, strict=True)],
    )
    expect_element(op, "input")


def _untouched(op: CatalogueOp) -> Dimensions:
    """Labels of the dimensions that are taken whole."""
    bounds = list(zip(*_slice_bounds(op), strict=True))
    shape = op.shape("input")

    def attributes(operands: Sequence[Shape]) -> dict[str, list[int]]:
        ends = [
            part if part != size else end
            for part, size, (_, end, _) in zip(operands[0], shape, bounds, strict=True)
        ]
        return {"begins": [bound[0] for bound in bounds], "ends": ends}

    return of_part(op, bounds, attributes)


def _slice_on_cpu(op: CatalogueOp) -> dict[str, list[int]]:
    begins, _, steps = _slice_bounds(op)
    return {"begins": begins, "step": steps}


def _lower_slice(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Lowers to a forward slice; the library has no negative steps, which reverse the result."""
    begins, ends, steps = _slice_bounds(op)
    backwards = [axis for axis, step in enumerate(steps) if step < 0]
    for axis in backwards:
        count = op.result_shape[axis]
        lowest = begins[axis] + (count - 1) * steps[axis] if count else begins[axis]
        ends[axis] = begins[axis] + 1 if count else lowest
        begins[axis], steps[axis] = lowest, -steps[axis]
    value = builder.slice(builder.operand(op, "input"), begins, ends, steps)
    for axis in backwards:
        if op.result_shape[axis] > 1:
            value = reversed_along(builder, value, axis)
    return value


_BOUNDS = (
    attribute("begins", INTEGERS),
    attribute("ends", INTEGERS),
    attribute("step", INTEGERS),
)

register(
    TTIRDefinition(
        "ttir.slice_static",
        (operand("input"),),
        _BOUNDS,
        verify=_verify_slice,
        dimensions=_untouched,
        numpy=lambda call: call.array("input")[_slices(call)],
        lower=_lower_slice,
        moves=True,
        cpu=cpu_call("movement", _slice_on_cpu),
    )
)


def _cpp_slice(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include(f"{MOVEMENT}/slice/slice.hpp")
    bounds = [Text(small_vector_text(op.parameter(name))) for name in ("begins", "ends", "step")]
    arguments = [calls[op.operands[0]], *bounds, output_memory(calls, op)]
    calls.bind(op.results[0], calls.call("ttnn::slice", *trimmed(arguments)))


register(
    TTNNDefinition(
        "ttnn.slice_static",
        # The library returns unaligned slices of block floats as bf16 (docs/library-rules.md).
        (OperandSpec("input", data_types=(*MOVED[:4], DataType.UINT16)),),
        _BOUNDS,
        verify=_verify_slice,
        numpy=lambda call: call.array("input")[_slices(call)],
        result_rules=(ResultRule(placed=True),),
        cpp=_cpp_slice,
        function="slice",
        flops=no_flops,
        nouns=("slice",),
        traits=Trait.TAKES_PART,
        call_kind=CallKind.SLICE,
    )
)


def _index_bounds(op: CatalogueOp) -> tuple[int, int, int, int]:
    shape = op.shape("input")
    dim = normalized_dim(op, op.parameter("dim"), len(shape))
    bounds = slice(*(op.parameter(name) for name in ("begin", "end", "step")))
    if bounds.step == 0:
        raise VerifyException(f"{op.name}: expected a step other than 0")
    size = shape[dim]
    if not (-size <= bounds.start < max(size, 1) and -size <= bounds.stop <= size):
        raise VerifyException(
            f"{op.name}: {bounds.start}:{bounds.stop}:{bounds.step} is out of range in dimension "
            f"{dim} of {shape}"
        )
    begin, end, step = bounds.indices(size)
    # A backward slice excludes its end, which cannot precede the first element.
    if min(begin, end) < 0:
        raise VerifyException(
            f"{op.name}: {bounds.start}:{bounds.stop}:{step} is out of range in dimension {dim} "
            f"of {shape}"
        )
    return dim, begin, end, step


def _decompose_index(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    dim, begin, end, step = _index_bounds(op)
    shape = op.shape("input")
    begins = [begin if axis == dim else 0 for axis in range(len(shape))]
    ends = [end if axis == dim else size for axis, size in enumerate(shape)]
    steps = [step if axis == dim else 1 for axis in range(len(shape))]
    return builder.slice(builder.operand(op, "input"), begins, ends, steps)


def _verify_index(op: CatalogueOp) -> None:
    """The step is not 0 and the result has the selected elements."""
    dim, begin, end, step = _index_bounds(op)
    shape = list(op.shape("input"))
    shape[dim] = len(range(begin, end, step))
    expect_shape(op, shape)
    expect_element(op, "input")


def _index(call: Call) -> Array:
    array = call.array("input")
    index = [slice(None)] * array.ndim
    index[call["dim"]] = slice(call["begin"], call["end"], call["step"])
    return array[tuple(index)]


register(
    TTIRDefinition(
        "ttir.index",
        (operand("input"),),
        tuple(attribute(name, INTEGER) for name in ("dim", "begin", "end", "step")),
        verify=_verify_index,
        numpy=_index,
        decompose=_decompose_index,
        moves=True,
    )
)


def _verify_index_select(op: CatalogueOp) -> None:
    """The result has the total length of all parts."""
    shape = list(op.shape("input"))
    dim = normalized_dim(op, op.parameter("dim"), len(shape))
    begin, length, stride = (op.parameter(name) for name in ("begin", "length", "stride"))
    stride = stride or shape[dim]
    size = shape[dim]
    if not 0 <= begin <= size - length or not 0 < length <= stride <= size:
        raise VerifyException(
            f"{op.name}: begin {begin}, length {length} and stride {stride} do not fit into "
            f"dimension {dim} of {tuple(shape)}"
        )
    parts = _index_select_parts(size, begin, length, stride)
    shape[dim] = sum(end - start for start, end in parts)
    expect_shape(op, shape)
    expect_element(op, "input")


def _index_select_parts(size: int, begin: int, length: int, stride: int) -> list[tuple[int, int]]:
    """Returns begin and end of each part; the last one is clamped to the dimension."""
    stride = stride or size
    return [(start, min(start + length, size)) for start in range(begin, size, stride)]


def _index_select(call: Call) -> Array:
    array = call.array("input")
    dim = call["dim"]
    parts = _index_select_parts(array.shape[dim], call["begin"], call["length"], call["stride"])
    return np.concatenate(
        [np.take(array, range(start, end), axis=dim) for start, end in parts], axis=dim
    )


def _decompose_index_select(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    value = builder.operand(op, "input")
    shape = op.shape("input")
    dim = normalized_dim(op, op.parameter("dim"), len(shape))
    parts = _index_select_parts(
        shape[dim], op.parameter("begin"), op.parameter("length"), op.parameter("stride")
    )
    return builder.concat([builder.slice_dim(value, dim, *part) for part in parts], dim)


register(
    TTIRDefinition(
        "ttir.index_select",
        (operand("input"),),
        (
            attribute("dim", INTEGER),
            attribute("begin", INTEGER),
            attribute("length", INTEGER),
            attribute("stride", INTEGER, 0),
        ),
        verify=_verify_index_select,
        numpy=_index_select,
        decompose=_decompose_index_select,
        moves=True,
    )
)
