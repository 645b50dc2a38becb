"""Reverse, slices with dynamic begins, and dimension sizes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import (
    DataType,
    constant_array,
    element_of,
    shape_of,
    si32,
    ui32,
)
from ttcodegen.dialects.operations.attribute_kinds import INTEGER, INTEGERS
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    CppCalls,
    Text,
    small_vector_text,
)
from ttcodegen.ops.core.definition import (
    Call,
    Layout,
    OperandSpec,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    register,
)
from ttcodegen.ops.core.dimensions import (
    expect_element,
    expect_integers,
    expect_shape,
    normalized_dim,
)
from ttcodegen.ops.core.lowering import cpu_call
from ttcodegen.ops.core.traits import no_flops
from ttcodegen.ops.indexing.gather_scatter import SCATTERED, gathered
from ttcodegen.ops.movement.data_movement import MOVEMENT

# reverse

_FEW = 8
"""Sizes up to which a reversal concatenates slices; larger ones are gathered."""


def _verify_reverse(op: CatalogueOp) -> None:
    """The dimensions exist and are distinct; the shape is unchanged."""
    rank = len(op.shape("input"))
    dims = [normalized_dim(op, dim, rank) for dim in op.parameter("dimensions")]
    if len(set(dims)) != len(dims):
        raise VerifyException(f"{op.name}: dimensions {dims} are not all different")
    expect_shape(op, op.shape("input"))
    expect_element(op, "input")


def reversed_along(builder: OpBuilder, value: SSAValue, dim: int) -> SSAValue:
    """Reverses one dimension."""
    shape = shape_of(value.type)
    size = shape[dim]
    if size <= _FEW:
        parts = [builder.slice_dim(value, dim, index, index + 1) for index in range(size)]
        return builder.concat(parts[::-1], dim) if parts else value
    indices = builder.emit("arange", [], TensorType(si32, [size]), start=size - 1, end=-1, step=-1)
    indices = builder.reshape(indices, [size if axis == dim else 1 for axis in range(len(shape))])
    indices = builder.repeat(indices, shape)
    return gathered(builder, value, builder.typecast(indices, ui32), dim)


def _reversal_on_cpu(op: CatalogueOp) -> dict[str, list[int]]:
    rank = len(op.shape("input"))
    return {"dimensions": [dim % rank for dim in op.parameter("dimensions")]}


def _lower_reverse(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    value = builder.operand(op, "input")
    rank = len(op.shape("input"))
    for dim in op.parameter("dimensions"):
        if prod(op.shape("input")):
            value = reversed_along(builder, value, dim % rank)
    return value


register(
    TTIRDefinition(
        "ttir.reverse",
        (operand("input"),),
        (attribute("dimensions", INTEGERS),),
        verify=_verify_reverse,
        numpy=lambda call: np.flip(call.array("input"), tuple(call["dimensions"])),
        lower=_lower_reverse,
        moves=True,
        cpu=cpu_call("movement", _reversal_on_cpu),
    )
)

# slice_dynamic


def _dynamic_steps(op: CatalogueOp) -> list[int]:
    steps = op.parameter("step")
    return [1] * len(op.shape("input")) if steps is None else steps


def _extents(op: CatalogueOp) -> list[int]:
    """Returns the distance from first to last element of the slice, plus one, per dimension."""
    steps = _dynamic_steps(op)
    return [
        (count - 1) * abs(step) + 1 if count else 0
        for count, step in zip(op.result_shape, steps, strict=True)
    ]


SLICE_AT = "ttir.slice_at"
"""Slice with dynamic begins in device programs; its ends follow from the result's shape."""


def _verify_at(op: CatalogueOp) -> None:
    """One begin per dimension; the result fits into the input."""
    _verify_places(op, ["begins"])


def _verify_dynamic(op: CatalogueOp) -> None:
    """One begin and one end per dimension; the result fits into the input."""
    _verify_places(op, ["begins", "ends"])


def _verify_places(op: CatalogueOp, names: Sequence[str]) -> None:
    shape = op.shape("input")
    for name in names:
        if op.shape(name) != (len(shape),):
            raise VerifyException(
                f"{op.name}: expected {name} of shape ({len(shape)},), found {op.shape(name)}"
            )
    expect_integers(op, *names)
    steps = _dynamic_steps(op)
    if len(steps) != len(shape) or 0 in steps or len(op.result_shape) != len(shape):
        raise VerifyException(
            f"{op.name}: expected {len(shape)} steps other than 0 and a result of rank "
            f"{len(shape)}, found steps {steps} and shape {op.result_shape}"
        )
    if any(extent > size for extent, size in zip(_extents(op), shape, strict=True)):
        raise VerifyException(
            f"{op.name}: a result of shape {op.result_shape} with steps {steps} does not fit into "
            f"{shape}"
        )
    expect_element(op, "input")


def _dynamic(call: Call) -> Array:
    """Slices by the begins and the result's shape; the ends are redundant."""
    x = call.array("input")
    steps = call["step"] or [1] * x.ndim
    begins = call.array("begins").astype(np.int64)
    for axis, (begin, step) in enumerate(zip(begins, steps, strict=True)):
        size = x.shape[axis]
        first = int(begin) + size if begin < 0 else int(begin)
        x = np.take(x, first + step * np.arange(call.results[0].shape[axis]), axis=axis)
    return x


def _constant(value: SSAValue) -> list[int] | None:
    """Returns the elements of a constant, None for other values."""
    op = value.owner
    if not isinstance(op, Operation) or op.name != "ttir.constant":
        return None
    assert isinstance(op, CatalogueOp)
    return [int(number) for number in constant_array(op.parameter("value")).reshape(-1)]


def _steps_on_cpu(op: CatalogueOp) -> dict[str, list[int]]:
    return {"step": op.parameter("step") or [1] * len(op.shape("input"))}


def _lower_dynamic(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Lowers to a static slice for constant begins.

    Negative steps slice forwards and reverse the result.
    """
    value = builder.operand(op, "input")
    steps, extents, shape = _dynamic_steps(op), _extents(op), op.shape("input")
    offsets = [0 if step > 0 else 1 - extent for step, extent in zip(steps, extents, strict=True)]
    forwards = [abs(step) for step in steps]
    known = _constant(op.operand("begins"))
    if known is not None:
        begins = [b + size if b < 0 else b for b, size in zip(known, shape, strict=True)]
        begins = [begin + offset for begin, offset in zip(begins, offsets, strict=True)]
        ends = [begin + extent for begin, extent in zip(begins, extents, strict=True)]
        if any(b < 0 or e > size for b, e, size in zip(begins, ends, shape, strict=True)):
            raise VerifyException(f"{op.name}: {begins} to {ends} is out of range in {shape}")
        value = builder.slice(value, begins, ends, forwards)
    else:
        begins = builder.operand(op, "begins")
        if any(offsets):
            begins = builder.typecast(begins, si32)
            begins = builder.like("add", begins, _numbers(builder, offsets, begins))
        ends = builder.like("add", begins, _numbers(builder, extents, begins))
        value = builder.emit(
            "slice_dynamic",
            [value, begins, ends],
            TensorType(element_of(value.type), op.result_shape),
            step=None if set(forwards) == {1} else forwards,
        )
    for axis, step in enumerate(steps):
        if step < 0:
            value = reversed_along(builder, value, axis)
    return value


def _numbers(builder: OpBuilder, numbers: Sequence[int], like: SSAValue) -> SSAValue:
    """Returns a constant with the element type of `like`."""
    if len(set(numbers)) == 1:
        return builder.full([len(numbers)], numbers[0], element_of(like.type))
    type_ = TensorType(si32, [len(numbers)])
    value = DenseIntOrFPElementsAttr.from_list(type_, list(numbers))
    constant = builder.emit("constant", [], type_, value=value)
    return builder.typecast(constant, element_of(like.type))


_INDICES = (DataType.INT32, DataType.UINT32)


def _dynamic_program(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Converts to `slice_at`, which device programs compute; None for empty slices."""
    if 0 in op.result_shape or not op.result_shape:
        return None
    begins = builder.operand(op, "begins")
    if declared_data_type(begins) not in _INDICES:
        begins = builder.typecast(begins, si32)
    return builder.emit(
        "slice_at", [builder.operand(op, "input"), begins], op.result_type, step=_dynamic_steps(op)
    )


def _with_ends(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    begins = builder.operand(op, "begins")
    ends = builder.like("add", begins, _numbers(builder, _extents(op), begins))
    return builder.emit(
        "slice_dynamic",
        [builder.operand(op, "input"), begins, ends],
        op.result_type,
        step=op.parameter("step"),
    )


def _begin_count(op: CatalogueOp) -> int:
    """Returns the number of begin positions that are valid in every dimension."""
    extents = _extents(op)
    return min(n - extent + 1 for n, extent in zip(op.shape("input"), extents, strict=True))


register(
    TTIRDefinition(
        "ttir.slice_dynamic",
        (
            operand("input"),
            operand("begins", input_kind="index", places=_begin_count),
            operand("ends", input_kind="index", places=_begin_count),
        ),
        (attribute("step", INTEGERS, None),),
        verify=_verify_dynamic,
        numpy=_dynamic,
        program=_dynamic_program,
        lower=_lower_dynamic,
        moves=True,
        cpu=cpu_call("indexing", _steps_on_cpu),
    )
)

register(
    TTIRDefinition(
        SLICE_AT,
        (operand("input"), operand("begins", input_kind="index", places=_begin_count)),
        (attribute("step", INTEGERS),),
        verify=_verify_at,
        numpy=_dynamic,
        decompose=_with_ends,
        moves=True,
    )
)


def _cpp_dynamic(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include(f"{MOVEMENT}/slice/slice.hpp")
    steps = op.parameter("step")
    given = [] if steps is None else [Text(small_vector_text(steps, "uint32_t"))]
    operands = [calls[value] for value in op.operands]
    calls.bind(op.results[0], calls.call("ttnn::slice<uint32_t>", *operands, *given))


# The library slices tiles in one dimension only, into equal parts. The bounds of row-major slices
# are read from the device, in the type that the call names.
_BOUND = {"layout": Layout.ROW_MAJOR, "data_types": (DataType.UINT32,)}

register(
    TTNNDefinition(
        "ttnn.slice_dynamic",
        (
            OperandSpec("input", layout=Layout.ROW_MAJOR, data_types=SCATTERED),
            operand("begins", **_BOUND),
            operand("ends", **_BOUND),
        ),
        (attribute("step", INTEGERS, None),),
        verify=_verify_dynamic,
        numpy=_dynamic,
        may_alias=True,
        result_rules=(ResultRule(layout=Layout.ROW_MAJOR),),
        cpp=_cpp_dynamic,
        flops=no_flops,
    )
)

# get_dimension_size


def _verify_size(op: CatalogueOp) -> None:
    """The dimension exists; the result is one number."""
    normalized_dim(op, op.parameter("dimension"), len(op.shape("operand")))
    if prod(op.result_shape) != 1:
        raise VerifyException(f"{op.name}: expected one number, found {op.result_shape}")


def _size(op: CatalogueOp) -> int:
    shape = op.shape("operand")
    dim: int = op.parameter("dimension") % len(shape)
    return shape[dim]


register(
    TTIRDefinition(
        "ttir.get_dimension_size",
        (operand("operand"),),
        (attribute("dimension", INTEGER),),
        verify=_verify_size,
        numpy=lambda call: np.full(
            call.results[0].shape, call.array("operand").shape[call["dimension"]]
        ),
        decompose=lambda builder, op: builder.full(
            op.result_shape, _size(op), element_of(op.result_type)
        ),
    )
)
