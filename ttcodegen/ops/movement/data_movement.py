"""Reshape, permute, repeat and concat."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, element_of, normalized_data_type, shape_of
from ttcodegen.dialects.operations.attribute_kinds import INTEGER, INTEGERS
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    CppCalls,
    Text,
    attribute_,
    cpp_call,
    operand_,
    output_memory,
    shape_text,
    small_vector_text,
    trimmed,
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
    variadic,
)
from ttcodegen.ops.core.dimensions import (
    along,
    expect_element,
    expect_shape,
    normalized_dim,
    of_concatenation,
    of_permutation,
    of_repetition,
    of_reshape,
    require,
)
from ttcodegen.ops.core.lowering import counted_from_front, cpu_call, dimension, same_attributes
from ttcodegen.ops.core.traits import CallKind, no_flops

MOVEMENT = "ttnn/operations/data_movement"
MOVED = (DataType.BFLOAT16, DataType.FLOAT32, DataType.INT32, DataType.UINT32, DataType.BFLOAT8_B)
"""Data types of reshape, concat, repeat and slice (docs/library-rules.md)."""
MOVED_ROWS = MOVED[:-1]
"""Row-major data types of the same ops: block floats are always tiled."""


# reshape, squeeze, unsqueeze


MOST_REPEATS = 1 << 31
"""Exclusive upper bound of repeat counts, as of dimension sizes."""


def _verify_reshape(op: CatalogueOp) -> None:
    """The number of elements is unchanged; the attribute is the result's shape, with at most one
    -1.
    """
    if prod(op.shape("input")) != prod(op.result_shape):
        raise VerifyException(
            f"{op.name}: cannot give {op.shape('input')} the shape {op.result_shape}: "
            "the number of elements differs"
        )
    shape = op.parameter("shape")
    if shape.count(-1) > 1:
        raise VerifyException(
            f"{op.name}: attribute 'shape' leaves {shape.count(-1)} sizes open, at most one can be"
        )
    if len(shape) != len(op.result_shape) or any(
        size not in (-1, found) for size, found in zip(shape, op.result_shape, strict=True)
    ):
        raise VerifyException(
            f"{op.name}: attribute 'shape' is {tuple(shape)}, the result {op.result_shape}"
        )
    expect_element(op, "input")


def _reshape(call: Call) -> Array:
    return call.array("input").reshape(call.results[0].shape)


_MOST_ROW_BYTES = 1 << 18
"""Largest row that the library can reshape: it holds rows in L1 (docs/library-rules.md)."""


def reshaped(builder: OpBuilder, value: SSAValue, shape: Sequence[int]) -> SSAValue:
    """Reshapes a value, in row-major layout where tiles would be mostly padding.

    Tiles of (2048, 512, 1, 1) would take 4 GiB.
    """
    if shape_of(value.type) != tuple(shape) and suits_rows(value, tuple(shape)):
        result = TensorType(element_of(value.type), shape)
        return builder.emit("reshape_row_major", [value], result, shape=list(shape))
    return builder.reshape(value, shape)


def _lower_reshape(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    return reshaped(builder, builder.operand(op, "input"), op.result_shape)


def suits_rows(value: SSAValue, shape: Sequence[int]) -> bool:
    data_type = normalized_data_type(element_of(value.type))
    if data_type is None or data_type not in MOVED_ROWS:
        return False
    shapes = (shape_of(value.type), tuple(shape))
    narrow = any(TensorPlacement(each, data_type).is_padding_in_tiles for each in shapes)
    return narrow and all(4 * each[-1] <= _MOST_ROW_BYTES for each in shapes if each)


register(
    TTIRDefinition(
        "ttir.reshape",
        (operand("input"),),
        (attribute("shape", INTEGERS),),
        verify=_verify_reshape,
        dimensions=of_reshape,
        numpy=_reshape,
        lower=_lower_reshape,
        moves=True,
        cpu=cpu_call("movement"),
        rearranges=True,
    )
)

for _name, _layout, _types in (
    ("reshape", Layout.TILE, MOVED),
    ("reshape_row_major", Layout.ROW_MAJOR, MOVED_ROWS),
):
    register(
        TTNNDefinition(
            f"ttnn.{_name}",
            (OperandSpec("input", layout=_layout, data_types=_types),),
            (attribute("shape", INTEGERS),),
            verify=_verify_reshape,
            numpy=_reshape,
            may_alias=True,
            flops=no_flops,
            call_kind=CallKind.RESHAPE,
            block_floats=("input",),
            rearranges=True,
            result_rules=(ResultRule(layout=_layout, placed=True),),
            cpp=cpp_call(
                "ttnn::reshape",
                f"{MOVEMENT}/reshape_view/reshape.hpp",
                operand_("input"),
                lambda calls, op: Text(shape_text(op.result_shape)),
                output_memory,
            ),
            function="reshape",
        )
    )


def _verify_squeeze(op: CatalogueOp) -> None:
    """The dimension has size 1 and is dropped."""
    shape = list(op.shape("input"))
    dim = normalized_dim(op, op.parameter("dim"), len(shape))
    if shape[dim] != 1:
        raise VerifyException(
            f"{op.name}: dimension {dim} of {tuple(shape)} has {shape[dim]} elements, expected 1"
        )
    expect_shape(op, shape[:dim] + shape[dim + 1 :])
    expect_element(op, "input")


def _verify_unsqueeze(op: CatalogueOp) -> None:
    """The result has one more dimension of size 1."""
    shape = list(op.shape("input"))
    dim = normalized_dim(op, op.parameter("dim"), len(shape) + 1)
    expect_shape(op, [*shape[:dim], 1, *shape[dim:]])
    expect_element(op, "input")


for _name, _verify in (("squeeze", _verify_squeeze), ("unsqueeze", _verify_unsqueeze)):
    register(
        TTIRDefinition(
            f"ttir.{_name}",
            (operand("input"),),
            (attribute("dim", INTEGER),),
            verify=_verify,
            dimensions=of_reshape,
            numpy=_reshape,
            decompose=lambda builder, op: builder.reshape(
                builder.operand(op, "input"), op.result_shape
            ),
            moves=True,
        )
    )

# permute, transpose


def inverse_permutation(permutation: Sequence[int]) -> list[int]:
    """Returns the inverse of a permutation."""
    return sorted(range(len(permutation)), key=permutation.__getitem__)


def _verify_permute(op: CatalogueOp) -> None:
    """The attribute is a permutation; the result's shape follows it."""
    shape = op.shape("input")
    permutation: list[int] = op.parameter("permutation")
    if sorted(permutation) != list(range(len(shape))):
        raise VerifyException(
            f"{op.name}: {tuple(permutation)} is no permutation of the dimensions of {shape}"
        )
    expect_shape(op, [shape[axis] for axis in permutation])
    expect_element(op, "input")


_OF_IMAGES = frozenset({"ttir.conv2d"})
"""Ops whose calls also take row-major images."""


def permuted(builder: OpBuilder, value: SSAValue, permutation: Sequence[int]) -> SSAValue:
    """Permutes the operand of a call that also takes rows.

    Uses row-major layout where tiles would be mostly padding, as for images of three channels.
    """
    shape = shape_of(value.type)
    after = [shape[axis] for axis in permutation]
    if list(permutation) == sorted(permutation) or not is_mostly_padding(value, after):
        return builder.permute(value, permutation)
    result = TensorType(element_of(value.type), after)
    return builder.emit("permute_row_major", [value], result, permutation=list(permutation))


def is_mostly_padding(value: SSAValue, shape: Sequence[int]) -> bool:
    """True if a value that can be row-major would be mostly padding in tiles of that shape."""
    data_type = normalized_data_type(element_of(value.type))
    if data_type is None or data_type not in MOVED_ROWS:
        return False
    return TensorPlacement(tuple(shape), data_type).tile_padding() > prod(shape)


def _lower_permute(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    value, permutation = builder.operand(op, "input"), op.parameter("permutation")
    uses = list(op.results[0].uses)
    if uses and all(use.index == 0 and use.operation.name in _OF_IMAGES for use in uses):
        return permuted(builder, value, permutation)
    return builder.permute(value, permutation)


register(
    TTIRDefinition(
        "ttir.permute",
        (operand("input"),),
        (attribute("permutation", INTEGERS),),
        verify=_verify_permute,
        dimensions=lambda op: of_permutation(op.parameter("permutation")),
        numpy=lambda call: np.transpose(call.array("input"), call["permutation"]),
        lower=_lower_permute,
        moves=True,
        cpu=cpu_call("movement", same_attributes("permutation")),
        rearranges=True,
    )
)

for _name, _input, _rule in (
    ("permute", OperandSpec("input"), ResultRule(placed=True)),
    (
        "permute_row_major",
        OperandSpec("input", layout=Layout.ROW_MAJOR, data_types=MOVED_ROWS),
        ResultRule(layout=Layout.ROW_MAJOR, placed=True),
    ),
):
    register(
        TTNNDefinition(
            f"ttnn.{_name}",
            (_input,),
            (attribute("permutation", INTEGERS),),
            verify=_verify_permute,
            numpy=lambda call: np.transpose(call.array("input"), call["permutation"]),
            result_rules=(_rule,),
            cpp=cpp_call(
                "ttnn::permute",
                f"{MOVEMENT}/permute/permute.hpp",
                operand_("input"),
                attribute_("permutation", lambda value: small_vector_text(value, "int64_t")),
                output_memory,
            ),
            flops=no_flops,
            rearranges=True,
            call_kind=CallKind.PERMUTATION,
            block_floats=("input",),
            function="permute",
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
    """The two dimensions are exchanged."""
    shape = op.shape("input")
    expect_shape(op, [shape[axis] for axis in _transposed(op)])
    expect_element(op, "input")


register(
    TTIRDefinition(
        "ttir.transpose",
        (operand("input"),),
        (attribute("dim0", INTEGER), attribute("dim1", INTEGER)),
        verify=_verify_transpose,
        dimensions=lambda op: of_permutation(_transposed(op)),
        numpy=lambda call: np.swapaxes(call.array("input"), call["dim0"], call["dim1"]),
        decompose=lambda builder, op: builder.permute(
            builder.operand(op, "input"), _transposed(op)
        ),
        moves=True,
        rearranges=True,
    )
)

# broadcast, repeat


def _verify_broadcast(op: CatalogueOp) -> None:
    """Every dimension is multiplied by its factor; only dimensions of size 1 have one."""
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
    expect_element(op, "input")


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
        dimensions=of_repetition,
        numpy=lambda call: np.broadcast_to(call.array("input"), call.results[0].shape),
        lower=_lower_broadcast,
        moves=True,
        cpu=cpu_call("movement"),
    )
)


def _verify_repeat(op: CatalogueOp) -> None:
    """Every dimension is multiplied by its factor."""
    shape = op.shape("input")
    factors = op.parameter("repeat_dimensions")
    if len(factors) != len(shape) or any(not 1 <= f < MOST_REPEATS for f in factors):
        raise VerifyException(
            f"{op.name}: expected {len(shape)} positive factors, found {tuple(factors)}"
        )
    expect_shape(op, [size * factor for size, factor in zip(shape, factors, strict=True)])
    expect_element(op, "input")


def _repeat(call: Call) -> Array:
    return np.tile(call.array("input"), call["repeat_dimensions"])


register(
    TTIRDefinition(
        "ttir.repeat",
        (operand("input"),),
        (attribute("repeat_dimensions", INTEGERS),),
        verify=_verify_repeat,
        dimensions=of_repetition,
        numpy=_repeat,
        lower=lambda builder, op: _repeated(
            builder, builder.operand(op, "input"), op.parameter("repeat_dimensions")
        ),
        moves=True,
        cpu=cpu_call("movement"),
        rearranges=True,
    )
)

register(
    TTNNDefinition(
        "ttnn.repeat",
        (OperandSpec("input", data_types=MOVED),),
        (attribute("repeat_dimensions", INTEGERS),),
        verify=_verify_repeat,
        numpy=_repeat,
        cpp=cpp_call(
            "ttnn::repeat",
            f"{MOVEMENT}/repeat/repeat.hpp",
            operand_("input"),
            attribute_("repeat_dimensions", shape_text),
        ),
        flops=no_flops,
        rearranges=True,
        participle="repeated",
        call_kind=CallKind.COPY,
    )
)


def _verify_repeat_interleave(op: CatalogueOp) -> None:
    """Every element of one dimension is repeated in place."""
    shape = list(op.shape("input"))
    dim = normalized_dim(op, op.parameter("dim"), len(shape))
    repeats = op.parameter("repeats")
    require(op, 1 <= repeats < MOST_REPEATS, f"repeats from 1 to {MOST_REPEATS - 1}", repeats)
    shape[dim] *= repeats
    expect_shape(op, shape)
    expect_element(op, "input")


def _repeat_interleave(call: Call) -> Array:
    return np.repeat(call.array("input"), call["repeats"], axis=call["dim"])


def _lower_repeat_interleave(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    value = builder.operand(op, "input")
    repeats, dim = op.parameter("repeats"), op.parameter("dim")
    if repeats == 1:
        return value
    if len(op.result_shape) > 1:
        return builder.emit("repeat_interleave", [value], op.result_type, repeats=repeats, dim=dim)
    # The library does not support rank 1 (docs/library-rules.md).
    row = builder.reshape(value, [1, *shape_of(value.type)])
    type_ = TensorType(element_of(value.type), [1, *op.result_shape])
    row = builder.emit("repeat_interleave", [row], type_, repeats=repeats, dim=1)
    return builder.reshape(row, op.result_shape)


def _interleaving_on_cpu(op: CatalogueOp) -> dict[str, int]:
    return {"repeats": op.parameter("repeats"), "dim": counted_from_front(op, "dim")}


_INTERLEAVE = (attribute("repeats", INTEGER), attribute("dim", INTEGER))

register(
    TTIRDefinition(
        "ttir.repeat_interleave",
        (operand("input"),),
        _INTERLEAVE,
        verify=_verify_repeat_interleave,
        dimensions=along("dim"),
        numpy=_repeat_interleave,
        lower=_lower_repeat_interleave,
        moves=True,
        cpu=cpu_call("movement", _interleaving_on_cpu),
    )
)

register(
    TTNNDefinition(
        "ttnn.repeat_interleave",
        (OperandSpec("input"),),
        _INTERLEAVE,
        verify=_verify_repeat_interleave,
        numpy=_repeat_interleave,
        cpp=cpp_call(
            "ttnn::repeat_interleave",
            f"{MOVEMENT}/repeat_interleave/repeat_interleave.hpp",
            operand_("input"),
            attribute_("repeats"),
            attribute_("dim"),
        ),
        flops=no_flops,
        call_kind=CallKind.COPY,
    )
)

# concat


def _verify_concat(op: CatalogueOp) -> None:
    """All dimensions but the concatenated one are equal."""
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
    elements = {element_of(value.type) for value in (*op.operands, *op.results)}
    require(op, len(elements) == 1, "operands and a result of one element type", len(elements))


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
        dimensions=of_concatenation,
        numpy=_concat,
        lower=_lower_concat,
        moves=True,
        cpu=cpu_call("movement", dimension("dim", "inputs")),
    )
)


def _cpp_concat(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include(f"{MOVEMENT}/concat/concat.hpp")
    tensors = calls.list("std::vector<ttnn::Tensor>", [calls[value] for value in op.operands])
    arguments = [tensors, Text(str(op.parameter("dim"))), output_memory(calls, op)]
    calls.bind(op.results[0], calls.call("ttnn::concat", *trimmed(arguments)))


for _name, _layout, _types in (
    ("concat", Layout.TILE, MOVED),
    ("concat_row_major", Layout.ROW_MAJOR, MOVED_ROWS),
):
    register(
        TTNNDefinition(
            f"ttnn.{_name}",
            (variadic("inputs", layout=_layout, data_types=_types),),
            (attribute("dim", INTEGER),),
            verify=_verify_concat,
            numpy=_concat,
            result_rules=(ResultRule(layout=_layout, placed=True),),
            cpp=_cpp_concat,
            flops=no_flops,
            nouns=("joined",),
            call_kind=CallKind.SLICE,
            function="concat",
        )
    )
