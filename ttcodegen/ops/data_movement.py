"""Ops that move elements and change none: shapes, orders, parts and joins of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.conversions.cpp_calls import (
    CppCalls,
    Text,
    attribute_,
    cpp_call,
    cpp_text,
    operand_,
    shape_text,
    small_vector_text,
)
from ttcodegen.conversions.op_builder import OpBuilder
from ttcodegen.dialects.datatypes import DataType, element_of, shape_of
from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.lazy_numpy import Array, np
from ttcodegen.ops.attribute_kinds import INTEGER, INTEGERS, NUMBER
from ttcodegen.ops.definition import (
    Call,
    Layout,
    OperandSpec,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    register,
    variadic,
)

MOVEMENT = "ttnn/operations/data_movement"
MOVED = (DataType.BFLOAT16, DataType.FLOAT32, DataType.INT32, DataType.UINT32, DataType.BFLOAT8_B)
"""What reshape, concat, repeat and slice move on the device without limits (rules-0.70.1.md)."""


def normalized_dim(op: CatalogueOp, dim: int, rank: int) -> int:
    """`dim` counted from the front; raises VerifyException if the tensor has no such dimension."""
    if not -rank <= dim < rank:
        raise VerifyException(
            f"{op.name}: dimension {dim} is out of range for a tensor of rank {rank}"
        )
    return dim % rank


def expect_shape(op: CatalogueOp, expected: Sequence[int], index: int = 0) -> None:
    """Raises VerifyException unless the result of that index has the expected shape."""
    found = shape_of(op.results[index].type)
    if tuple(expected) != found:
        raise VerifyException(
            f"{op.name}: expected a result of shape {tuple(expected)}, found {found}"
        )


# reshape, squeeze, unsqueeze


def _verify_reshape(op: CatalogueOp) -> None:
    """As many elements as before; the attribute names the result's shape."""
    if prod(op.shape("input")) != prod(op.result_shape):
        raise VerifyException(
            f"{op.name}: cannot give {op.shape('input')} the shape {op.result_shape}: "
            "the number of elements differs"
        )
    shape = op.parameter("shape")
    if len(shape) != len(op.result_shape) or any(
        asked not in (-1, found) for asked, found in zip(shape, op.result_shape, strict=True)
    ):
        raise VerifyException(
            f"{op.name}: attribute 'shape' is {tuple(shape)}, the result {op.result_shape}"
        )


def _reshape(call: Call) -> Array:
    return call.array("input").reshape(call.results[0].shape)


def _lower_reshape(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    return builder.reshape(builder.operand(op, "input"), op.result_shape)


register(
    TTIRDefinition(
        "ttir.reshape",
        (operand("input"),),
        (attribute("shape", INTEGERS),),
        verify=_verify_reshape,
        numpy=_reshape,
        lower=_lower_reshape,
        moves=True,
    )
)

register(
    TTNNDefinition(
        "ttnn.reshape",
        (OperandSpec("input", data_types=MOVED),),
        (attribute("shape", INTEGERS),),
        numpy=_reshape,
        may_alias=True,
        cpp=cpp_call(
            "ttnn::reshape",
            f"{MOVEMENT}/reshape_view/reshape.hpp",
            operand_("input"),
            lambda calls, op: Text(shape_text(op.result_shape)),
        ),
    )
)


def _verify_squeeze(op: CatalogueOp) -> None:
    """The dimension has one element and is gone in the result."""
    shape = list(op.shape("input"))
    dim = normalized_dim(op, op.parameter("dim"), len(shape))
    if shape[dim] != 1:
        raise VerifyException(
            f"{op.name}: dimension {dim} of {tuple(shape)} has {shape[dim]} elements, expected 1"
        )
    expect_shape(op, shape[:dim] + shape[dim + 1 :])


def _verify_unsqueeze(op: CatalogueOp) -> None:
    """The result has one dimension of one element more."""
    shape = list(op.shape("input"))
    dim = normalized_dim(op, op.parameter("dim"), len(shape) + 1)
    expect_shape(op, [*shape[:dim], 1, *shape[dim:]])


for _name, _verify in (("squeeze", _verify_squeeze), ("unsqueeze", _verify_unsqueeze)):
    register(
        TTIRDefinition(
            f"ttir.{_name}",
            (operand("input"),),
            (attribute("dim", INTEGER),),
            verify=_verify,
            numpy=_reshape,
            decompose=_lower_reshape,
            moves=True,
        )
    )

# permute, transpose


def _verify_permute(op: CatalogueOp) -> None:
    """The attribute is a permutation; the result's shape follows it."""
    shape = op.shape("input")
    permutation: list[int] = op.parameter("permutation")
    if sorted(permutation) != list(range(len(shape))):
        raise VerifyException(
            f"{op.name}: {tuple(permutation)} is no permutation of the dimensions of {shape}"
        )
    expect_shape(op, [shape[axis] for axis in permutation])


register(
    TTIRDefinition(
        "ttir.permute",
        (operand("input"),),
        (attribute("permutation", INTEGERS),),
        verify=_verify_permute,
        numpy=lambda call: np.transpose(call.array("input"), call["permutation"]),
        lower=lambda builder, op: builder.permute(
            builder.operand(op, "input"), op.parameter("permutation")
        ),
        moves=True,
    )
)

register(
    TTNNDefinition(
        "ttnn.permute",
        (OperandSpec("input"),),
        (attribute("permutation", INTEGERS),),
        numpy=lambda call: np.transpose(call.array("input"), call["permutation"]),
        cpp=cpp_call(
            "ttnn::permute",
            f"{MOVEMENT}/permute/permute.hpp",
            operand_("input"),
            attribute_("permutation", lambda value: small_vector_text(value, "int64_t")),
        ),
    )
)


def _transposed(op: CatalogueOp) -> list[int]:
    rank = len(op.shape("input"))
    first = normalized_dim(op, op.parameter("dim0"), rank)
    second = normalized_dim(op, op.parameter("dim1"), rank)
    permutation = list(range(rank))
    permutation[first], permutation[second] = second, first
    return permutation


def _verify_transpose(op: CatalogueOp) -> None:
    """The two dimensions change places."""
    shape = op.shape("input")
    expect_shape(op, [shape[axis] for axis in _transposed(op)])


register(
    TTIRDefinition(
        "ttir.transpose",
        (operand("input"),),
        (attribute("dim0", INTEGER), attribute("dim1", INTEGER)),
        verify=_verify_transpose,
        numpy=lambda call: np.swapaxes(call.array("input"), call["dim0"], call["dim1"]),
        decompose=lambda builder, op: builder.permute(
            builder.operand(op, "input"), _transposed(op)
        ),
        moves=True,
    )
)

# broadcast, repeat


def _verify_broadcast(op: CatalogueOp) -> None:
    """Every dimension is multiplied by its factor."""
    shape = op.shape("input")
    factors = op.parameter("broadcast_dimensions")
    if len(factors) != len(shape):
        raise VerifyException(
            f"{op.name}: expected {len(shape)} factors for a tensor of shape {shape}, "
            f"found {len(factors)}"
        )
    if any(size != 1 and factor != 1 for size, factor in zip(shape, factors, strict=True)):
        raise VerifyException(
            f"{op.name}: only dimensions of one element broadcast, found {shape} times "
            f"{tuple(factors)}"
        )
    expect_shape(op, [size * factor for size, factor in zip(shape, factors, strict=True)])


def _lower_broadcast(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    value = builder.operand(op, "input")
    factors = op.parameter("broadcast_dimensions")
    return _repeated(builder, value, factors)


def _repeated(builder: OpBuilder, value: SSAValue, factors: Sequence[int]) -> SSAValue:
    shape = [size * factor for size, factor in zip(shape_of(value.type), factors, strict=True)]
    return builder.repeat(value, shape)


register(
    TTIRDefinition(
        "ttir.broadcast",
        (operand("input"),),
        (attribute("broadcast_dimensions", INTEGERS),),
        verify=_verify_broadcast,
        numpy=lambda call: np.broadcast_to(call.array("input"), call.results[0].shape),
        lower=_lower_broadcast,
        moves=True,
    )
)


def _verify_repeat(op: CatalogueOp) -> None:
    """Every dimension is multiplied by its factor."""
    shape = op.shape("input")
    factors = op.parameter("repeat_dimensions")
    if len(factors) != len(shape) or any(factor < 1 for factor in factors):
        raise VerifyException(
            f"{op.name}: expected {len(shape)} positive factors, found {tuple(factors)}"
        )
    expect_shape(op, [size * factor for size, factor in zip(shape, factors, strict=True)])


def _repeat(call: Call) -> Array:
    return np.tile(call.array("input"), call["repeat_dimensions"])


register(
    TTIRDefinition(
        "ttir.repeat",
        (operand("input"),),
        (attribute("repeat_dimensions", INTEGERS),),
        verify=_verify_repeat,
        numpy=_repeat,
        lower=lambda builder, op: _repeated(
            builder, builder.operand(op, "input"), op.parameter("repeat_dimensions")
        ),
        moves=True,
    )
)

register(
    TTNNDefinition(
        "ttnn.repeat",
        (OperandSpec("input", data_types=MOVED),),
        (attribute("repeat_dimensions", INTEGERS),),
        numpy=_repeat,
        cpp=cpp_call(
            "ttnn::repeat",
            f"{MOVEMENT}/repeat/repeat.hpp",
            operand_("input"),
            attribute_("repeat_dimensions", shape_text),
        ),
    )
)


def _verify_repeat_interleave(op: CatalogueOp) -> None:
    """Every element of one dimension is repeated in place."""
    shape = list(op.shape("input"))
    dim = normalized_dim(op, op.parameter("dim"), len(shape))
    shape[dim] *= op.parameter("repeats")
    expect_shape(op, shape)


def _repeat_interleave(call: Call) -> Array:
    return np.repeat(call.array("input"), call["repeats"], axis=call["dim"])


def _lower_repeat_interleave(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    value = builder.operand(op, "input")
    repeats, dim = op.parameter("repeats"), op.parameter("dim")
    if repeats == 1:
        return value
    if len(op.result_shape) > 1:
        return builder.emit("repeat_interleave", [value], op.result_type, repeats=repeats, dim=dim)
    # The library repeats nothing of rank 1 (rules-0.70.1.md).
    row = builder.reshape(value, [1, *shape_of(value.type)])
    type_ = TensorType(element_of(value.type), [1, *op.result_shape])
    row = builder.emit("repeat_interleave", [row], type_, repeats=repeats, dim=1)
    return builder.reshape(row, op.result_shape)


_INTERLEAVE = (attribute("repeats", INTEGER), attribute("dim", INTEGER))

register(
    TTIRDefinition(
        "ttir.repeat_interleave",
        (operand("input"),),
        _INTERLEAVE,
        verify=_verify_repeat_interleave,
        numpy=_repeat_interleave,
        lower=_lower_repeat_interleave,
        moves=True,
    )
)

register(
    TTNNDefinition(
        "ttnn.repeat_interleave",
        (OperandSpec("input"),),
        _INTERLEAVE,
        numpy=_repeat_interleave,
        cpp=cpp_call(
            "ttnn::repeat_interleave",
            f"{MOVEMENT}/repeat_interleave/repeat_interleave.hpp",
            operand_("input"),
            attribute_("repeats"),
            attribute_("dim"),
        ),
    )
)

# concat


def _verify_concat(op: CatalogueOp) -> None:
    """All dimensions but the joined one are equal."""
    shapes = [shape_of(value.type) for value in op.operands]
    if not shapes:
        raise VerifyException(f"{op.name}: expected at least one tensor")
    dim = normalized_dim(op, op.parameter("dim"), len(shapes[0]))
    rest = {shape[:dim] + shape[dim + 1 :] for shape in shapes}
    if len(rest) != 1 or len({len(shape) for shape in shapes}) != 1:
        raise VerifyException(
            f"{op.name}: the tensors differ in other dimensions than {dim}: "
            + ", ".join(str(shape) for shape in shapes)
        )
    expected = list(shapes[0])
    expected[dim] = sum(shape[dim] for shape in shapes)
    expect_shape(op, expected)


def _concat(call: Call) -> Array:
    return np.concatenate(call.inputs, axis=call["dim"])


def _lower_concat(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    parts = [builder[value] for value in op.operands if prod(shape_of(value.type)) > 0]
    dim = op.parameter("dim") % len(op.result_shape)
    if not parts:
        return builder[op.operands[0]]
    if len(parts) == 1:
        return parts[0]
    return builder.emit("concat", [parts], op.result_type, dim=dim)


register(
    TTIRDefinition(
        "ttir.concat",
        (variadic("inputs"),),
        (attribute("dim", INTEGER),),
        verify=_verify_concat,
        numpy=_concat,
        lower=_lower_concat,
        moves=True,
    )
)


def _cpp_concat(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include(f"{MOVEMENT}/concat/concat.hpp")
    tensors = calls.list("std::vector<ttnn::Tensor>", [calls[value] for value in op.operands])
    calls.bind(op.results[0], calls.call("ttnn::concat", tensors, Text(str(op.parameter("dim")))))


register(
    TTNNDefinition(
        "ttnn.concat",
        (variadic("inputs", data_types=MOVED),),
        (attribute("dim", INTEGER),),
        numpy=_concat,
        cpp=_cpp_concat,
    )
)

# slice, index, reverse


def _slices(call: Call) -> tuple[slice, ...]:
    """Ends before the start of a dimension (a negative step) mean everything from the begin on."""
    shape = call.array("input").shape
    return tuple(
        slice(begin, end if step > 0 or end >= 0 else None, step)
        for begin, end, step, _ in zip(
            call["begins"], call["ends"], call["step"], shape, strict=True
        )
    )


def _slice_bounds(op: CatalogueOp) -> tuple[list[int], list[int], list[int]]:
    """Begins, ends and steps, counted from the front."""
    shape = op.shape("input")
    bounds = [op.parameter(name) for name in ("begins", "ends", "step")]
    for name, values in zip(("begins", "ends", "step"), bounds, strict=True):
        if len(values) != len(shape):
            raise VerifyException(
                f"{op.name}: expected {len(shape)} {name} for a tensor of shape {shape}, "
                f"found {len(values)}"
            )
    begins = [b + size if b < 0 else b for b, size in zip(bounds[0], shape, strict=True)]
    ends = [e + size if e < 0 else e for e, size in zip(bounds[1], shape, strict=True)]
    return begins, ends, bounds[2]


def _verify_slice(op: CatalogueOp) -> None:
    """Begins and ends lie in the tensor, steps are positive, and the result has what they span."""
    shape = op.shape("input")
    begins, ends, steps = _slice_bounds(op)
    for axis, (begin, end, step) in enumerate(zip(begins, ends, steps, strict=True)):
        if step == 0 or not 0 <= begin <= shape[axis] or not 0 <= end <= shape[axis]:
            raise VerifyException(
                f"{op.name}: {begin}:{end}:{step} is out of range in dimension {axis} of {shape}"
            )
    expect_shape(
        op,
        [len(range(b, e, s)) for b, e, s in zip(begins, ends, steps, strict=True)],
    )


def _lower_slice(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    return builder.slice(builder.operand(op, "input"), *_slice_bounds(op))


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
        numpy=lambda call: call.array("input")[_slices(call)],
        lower=_lower_slice,
        moves=True,
    )
)


def _cpp_slice(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include(f"{MOVEMENT}/slice/slice.hpp")
    bounds = [Text(small_vector_text(op.parameter(name))) for name in ("begins", "ends", "step")]
    calls.bind(op.results[0], calls.call("ttnn::slice", calls[op.operands[0]], *bounds))


register(
    TTNNDefinition(
        "ttnn.slice_static",
        # An unaligned block-float slice comes back as bf16 (rules-0.70.1.md).
        (OperandSpec("input", data_types=(*MOVED[:4], DataType.UINT16)),),
        _BOUNDS,
        numpy=lambda call: call.array("input")[_slices(call)],
        cpp=_cpp_slice,
    )
)


def _index_bounds(op: CatalogueOp) -> tuple[int, int, int, int]:
    shape = op.shape("input")
    dim = normalized_dim(op, op.parameter("dim"), len(shape))
    begin, end, step = (op.parameter(name) for name in ("begin", "end", "step"))
    begin, end, _ = slice(begin, end, 1).indices(shape[dim])
    return dim, begin, end, step


def _decompose_index(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    dim, begin, end, step = _index_bounds(op)
    shape = op.shape("input")
    begins = [begin if axis == dim else 0 for axis in range(len(shape))]
    ends = [end if axis == dim else size for axis, size in enumerate(shape)]
    steps = [step if axis == dim else 1 for axis in range(len(shape))]
    return builder.slice(builder.operand(op, "input"), begins, ends, steps)


def _verify_index(op: CatalogueOp) -> None:
    """The step is positive and the result has what begin, end and step span."""
    dim, begin, end, step = _index_bounds(op)
    if step < 1:
        raise VerifyException(f"{op.name}: expected a positive step, found {step}")
    shape = list(op.shape("input"))
    shape[dim] = len(range(begin, end, step))
    expect_shape(op, shape)


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
    """The result has the length of all strides put together."""
    shape = list(op.shape("input"))
    dim = normalized_dim(op, op.parameter("dim"), len(shape))
    begin, length, stride = (op.parameter(name) for name in ("begin", "length", "stride"))
    stride = stride or shape[dim]
    if not 0 <= begin <= shape[dim] or not 0 < length <= stride or shape[dim] % stride:
        raise VerifyException(
            f"{op.name}: begin {begin}, length {length} and stride {stride} do not divide "
            f"dimension {dim} of {tuple(shape)}"
        )
    shape[dim] = len(range(begin, shape[dim] - length + 1, stride)) * length
    expect_shape(op, shape)


def _index_select_parts(size: int, begin: int, length: int, stride: int) -> list[tuple[int, int]]:
    stride = stride or size
    return [(start, start + length) for start in range(begin, size - length + 1, stride)]


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

# pad


def _pad_widths(op: CatalogueOp) -> list[tuple[int, int]]:
    padding = op.parameter("padding")
    rank = len(op.shape("input"))
    if len(padding) != 2 * rank or any(width < 0 for width in padding):
        raise VerifyException(
            f"{op.name}: expected {2 * rank} non-negative widths, found {tuple(padding)}"
        )
    return [(padding[2 * axis], padding[2 * axis + 1]) for axis in range(rank)]


def _verify_pad(op: CatalogueOp) -> None:
    """Every dimension grows by its two widths."""
    widths = _pad_widths(op)
    shape = op.shape("input")
    expect_shape(op, [size + sum(width) for size, width in zip(shape, widths, strict=True)])


def _pad(call: Call) -> Array:
    padding = call["padding"]
    widths = [(padding[i], padding[i + 1]) for i in range(0, len(padding), 2)]
    return np.pad(call.array("input"), widths, constant_values=call["value"])


def _lower_pad(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Padding of dimensions beyond the lowest three is joined on as blocks: the library pads at
    most the lowest three dimensions of tensors of rank above four (rules-0.70.1.md)."""
    value = builder.operand(op, "input")
    widths = _pad_widths(op)
    fill = op.parameter("value")
    rank = len(widths)
    low = max(0, rank - 3)
    if any(width != (0, 0) for width in widths[low:]):
        shape = list(shape_of(value.type))
        for axis in range(low, rank):
            shape[axis] += sum(widths[axis])
        kept = [(0, 0)] * low + widths[low:]
        front = any(before for before, _ in kept)
        value = builder.emit(
            "pad_row_major" if front else "pad",
            [value],
            TensorType(element_of(value.type), shape),
            padding=[width for pair in kept for width in pair],
            value=fill,
        )
    for axis in range(low):
        for position, width in enumerate(widths[axis]):
            if width:
                shape = list(shape_of(value.type))
                shape[axis] = width
                block = builder.full(shape, fill, element_of(value.type))
                value = builder.concat([block, value] if position == 0 else [value, block], axis)
    return value


_PAD = (attribute("padding", INTEGERS), attribute("value", NUMBER, 0.0))

register(
    TTIRDefinition(
        "ttir.pad",
        (operand("input"),),
        _PAD,
        verify=_verify_pad,
        numpy=_pad,
        lower=_lower_pad,
        moves=True,
    )
)


def _cpp_pad(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include(f"{MOVEMENT}/pad/pad.hpp")
    padding = op.parameter("padding")
    pairs = ", ".join(f"{{{padding[i]}, {padding[i + 1]}}}" for i in range(0, len(padding), 2))
    widths = Text(f"ttsl::SmallVector<ttnn::operations::data_movement::PadSpecDim>{{{pairs}}}")
    value = Text(cpp_text(float(op.parameter("value"))))
    # The overload for PadSpecDim has no default for use_multicore.
    call = calls.call("ttnn::pad", calls[op.operands[0]], widths, value, Text("true"))
    calls.bind(op.results[0], call)


# Tiles are padded at the back only; a padding in front needs the rows themselves.
for _name, _layout in (("pad", Layout.TILE), ("pad_row_major", Layout.ROW_MAJOR)):
    register(
        TTNNDefinition(
            f"ttnn.{_name}",
            (OperandSpec("input", layout=_layout, data_types=MOVED[:4]),),
            _PAD,
            numpy=_pad,
            result_rules=(ResultRule(layout=_layout),),
            cpp=_cpp_pad,
        )
    )
