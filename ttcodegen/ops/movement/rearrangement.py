"""Einops-style rearrange, bitcasts and padding."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import Float16Type, Float64Type, TensorType
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, element_of, normalized_data_type, shape_of
from ttcodegen.dialects.operations.attribute_kinds import INTEGERS, NUMBER, STRING
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder, number_as
from ttcodegen.ops.core.calls import Argument, CppCalls, Text, cpp_call, cpp_text, operand_
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
from ttcodegen.ops.core.dimensions import Dimensions, all_but, expect_element, expect_shape
from ttcodegen.ops.core.lowering import cpu_call, number_of
from ttcodegen.ops.core.traits import CallKind, Trait, no_flops
from ttcodegen.ops.elementwise.registration import UNARY_HEADER
from ttcodegen.ops.movement.data_movement import MOVED_ROWS, MOVEMENT

if TYPE_CHECKING:
    import numpy


# rearrange

_TOKEN = re.compile(r"\s*(?:([A-Za-z_]\w*|1)|([()]))")


@dataclass(frozen=True)
class Arrangement:
    """Parsed rearrange pattern, such as `b (h w) -> (b h) w`."""

    split: list[int]
    """Shape of the input with its groups expanded to axes."""
    permutation: list[int]
    result: list[int]


def _side(text: str) -> list[list[str]]:
    """Parses one side of a pattern to groups of axes; raises ValueError if it is malformed."""
    groups: list[list[str]] = []
    open_group: list[str] | None = None
    position, text = 0, text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError(f"unexpected {text[position:].strip()[0]!r}")
        position = match.end()
        name, bracket = match.groups()
        axes = [] if name == "1" else [name]
        if bracket == "(" and open_group is None:
            open_group = []
        elif bracket == ")" and open_group is not None:
            groups.append(open_group)
            open_group = None
        elif bracket:
            raise ValueError(f"unexpected {bracket!r}")
        elif open_group is not None:
            open_group += axes
        else:
            groups.append(axes)
    if open_group is not None:
        raise ValueError("a group is not closed")
    return groups


def _infer_sizes(sizes: dict[str, int], groups: list[list[str]], shape: tuple[int, ...]) -> None:
    """Infers axis sizes from dimensions with at most one unknown axis.

    Raises ValueError if a group does not fit its dimension.
    """
    if len(groups) != len(shape):
        raise ValueError(f"{len(groups)} dimensions are described, {shape} has {len(shape)}")
    for group, size in zip(groups, shape, strict=True):
        unknown = [axis for axis in group if axis not in sizes]
        known = prod(sizes[axis] for axis in group if axis in sizes)
        if len(unknown) == 1 and known and size % known == 0:
            sizes[unknown[0]] = size // known
        elif not unknown and known != size:
            raise ValueError(f"'{' '.join(group)}' has {known} elements, expected {size}")


def arrangement(pattern: str, shape: tuple[int, ...], result: tuple[int, ...]) -> Arrangement:
    """Parses a rearrange pattern and infers its axis sizes from both shapes.

    Raises ValueError if it is malformed or does not fit them.
    """
    left_text, arrow, right_text = pattern.partition("->")
    if not arrow:
        raise ValueError("expected two sides with '->' between them")
    left, right = _side(left_text), _side(right_text)
    names = [[axis for group in groups for axis in group] for groups in (left, right)]
    if sorted(names[0]) != sorted(names[1]) or len(set(names[0])) != len(names[0]):
        raise ValueError("expected the same axes on both sides, each of them once")
    sizes: dict[str, int] = {}
    # A size may depend on sizes inferred from the other side, in any order.
    for _ in range(len(names[0]) + 1):
        _infer_sizes(sizes, left, shape)
        _infer_sizes(sizes, right, result)
    if missing := [axis for axis in names[0] if axis not in sizes]:
        raise ValueError(f"the shapes do not determine the sizes of {', '.join(missing)}")
    return Arrangement(
        [sizes[axis] for axis in names[0]],
        [names[0].index(axis) for axis in names[1]],
        list(result),
    )


def _arrangement(op: CatalogueOp) -> Arrangement:
    try:
        return arrangement(op.parameter("pattern"), op.shape("input"), op.result_shape)
    except ValueError as error:
        raise VerifyException(
            f"{op.name}: the pattern {op.parameter('pattern')!r} does not take "
            f"{op.shape('input')} to {op.result_shape}: {error}"
        ) from None


def _verify_rearrange(op: CatalogueOp) -> None:
    """The pattern names every axis once on each side and fits both shapes."""
    _arrangement(op)


def _rearrange(call: Call) -> Array:
    x = call.array("input")
    found = arrangement(call["pattern"], x.shape, call.results[0].shape)
    return x.reshape(found.split).transpose(found.permutation).reshape(found.result)


def _decompose_rearrange(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    found = _arrangement(op)
    value = builder.reshape(builder.operand(op, "input"), found.split)
    return builder.reshape(builder.permute(value, found.permutation), found.result)


register(
    TTIRDefinition(
        "ttir.rearrange",
        (operand("input"),),
        (attribute("pattern", STRING),),
        verify=_verify_rearrange,
        numpy=_rearrange,
        decompose=_decompose_rearrange,
        moves=True,
    )
)

# bitcast_convert


def _width(element: object) -> int | None:
    """Returns the bit width of an element type, None if it has no fixed one."""
    width = getattr(element, "bitwidth", None)
    return width if isinstance(width, int) else None


def _verify_bitcast(op: CatalogueOp) -> None:
    """Elements keep their bit width; the shape is unchanged."""
    found = element_of(op.operands[0].type), element_of(op.result_type)
    widths = [_width(element) for element in found]
    if None in widths or widths[0] != widths[1]:
        raise VerifyException(
            f"{op.name}: expected elements of as many bits as {found[0]}, found {found[1]}"
        )
    expect_shape(op, op.shape("input"))


def _other_bits(op: CatalogueOp) -> str | None:
    """Refuses f16 and f64, which have another representation on the device."""
    elements = [element_of(value.type) for value in (*op.operands, *op.results)]
    if elements[0] != elements[1]:
        for element in elements:
            if isinstance(element, Float16Type | Float64Type):
                return f"the bits of {element} are not kept: it is another type on the device"
    return None


def _bitcast(call: Call) -> Array:
    source, target = np.dtype(call.operand_dtypes["input"][0]), np.dtype(call.results[0].dtype)
    array = call.array("input")
    if array.shape == call.results[0].shape and source.itemsize != target.itemsize:
        # Runs without rounding hold bf16 in float32; its bits are still those of bf16.
        source, target = (
            np.dtype("bfloat16") if each.name == "float32" else each for each in (source, target)
        )
    # `ascontiguousarray` would turn a scalar into an array of rank 1.
    found = array.astype(source, order="C").view(target)
    return found.astype(np.float32) if target.itemsize == 2 and _is_short(target) else found


def _is_short(dtype: numpy.dtype) -> bool:
    """True for 16-bit floats, which are computed in float32."""
    return dtype.name in ("bfloat16", "float16")


_WIDTHS = {
    DataType.BFLOAT16: 16,
    DataType.UINT16: 16,
    DataType.FLOAT32: 32,
    DataType.INT32: 32,
    DataType.UINT32: 32,
    DataType.UINT8: 8,
}


def _lower_bitcast(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    value = builder.operand(op, "input")
    types = [normalized_data_type(element_of(t)) for t in (value.type, op.result_type)]
    if types[0] is types[1]:
        return value
    if None in types or _WIDTHS[types[0]] != _WIDTHS[types[1]]:  # pyright: ignore
        raise VerifyException(
            f"{op.name}: on the device, elements of the types of operand and result differ in size"
        )
    return builder.emit(
        "bitcast", [value], TensorType(element_of(op.result_type), shape_of(value.type))
    )


register(
    TTIRDefinition(
        "ttir.bitcast_convert",
        (operand("input"),),
        verify=_verify_bitcast,
        numpy=_bitcast,
        lower=_lower_bitcast,
        refused_form=_other_bits,
        cpu=cpu_call("elementwise"),
        traits=Trait.READS_BITS,
    )
)


def _data_type(calls: CppCalls, op: CatalogueOp) -> Argument:
    return Text(cpp_text(declared_data_type(op.results[0])))


register(
    TTNNDefinition(
        "ttnn.bitcast",
        (OperandSpec("input"),),
        verify=_verify_bitcast,
        numpy=_bitcast,
        result_rules=(ResultRule("declared"),),
        cpp=cpp_call("ttnn::bitcast", UNARY_HEADER, operand_("input"), _data_type),
        flops=no_flops,
    )
)


# pad


def _pad_widths(op: CatalogueOp) -> list[tuple[int, int]]:
    padding = op.parameter("padding")
    rank = len(op.shape("input"))
    if len(padding) != 2 * rank:
        raise VerifyException(f"{op.name}: expected {2 * rank} widths, found {tuple(padding)}")
    return _pairs(padding)


def _pairs(padding: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(padding[::2], padding[1::2], strict=True))


def _cut(
    shape: Sequence[int], widths: Sequence[tuple[int, int]]
) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Returns the slice that negative widths leave, as begins and ends, and the positive widths."""
    begins = [max(0, -before) for before, _ in widths]
    ends = [size + min(0, after) for size, (_, after) in zip(shape, widths, strict=True)]
    return begins, ends, [(max(0, before), max(0, after)) for before, after in widths]


def _verify_pad(op: CatalogueOp) -> None:
    """Every dimension grows by its two widths; negative ones crop."""
    widths = _pad_widths(op)
    shape = op.shape("input")
    begins, ends, _ = _cut(shape, widths)
    if any(begin > end for begin, end in zip(begins, ends, strict=True)):
        raise VerifyException(f"{op.name}: widths {widths} cut off more than {shape} has")
    expect_shape(op, [size + sum(width) for size, width in zip(shape, widths, strict=True)])
    expect_element(op, "input")


def _verify_library_pad(op: CatalogueOp) -> None:
    """Widths are not negative, as the library requires."""
    if any(width < 0 for width in op.parameter("padding")):
        widths = tuple(op.parameter("padding"))
        raise VerifyException(f"{op.name}: expected widths of 0 or more, found {widths}")
    _verify_pad(op)


def _pad(call: Call) -> Array:
    array = call.array("input")
    begins, ends, widths = _cut(array.shape, _pairs(call["padding"]))
    part = array[tuple(map(slice, begins, ends))]
    fill = number_as(call["value"], array.dtype.name)
    return np.pad(part, widths, constant_values=fill) if widths else part


def _lower_pad(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Pads the last three dimensions by calls, others by concatenated blocks.

    The library pads at most the last three dimensions of tensors of rank above four
    (docs/library-rules.md).
    """
    begins, ends, widths = _cut(op.shape("input"), _pad_widths(op))
    value = builder.slice(builder.operand(op, "input"), begins, ends)
    fill = op.parameter("value")
    low = max(0, len(widths) - 3)
    value = _pad_with(builder, value, widths[low:], fill)
    for axis in range(low):
        for position, width in enumerate(widths[axis]):
            if width:
                shape = list(shape_of(value.type))
                shape[axis] = width
                block = builder.full(shape, fill, element_of(value.type))
                value = builder.concat([block, value] if position == 0 else [value, block], axis)
    return value


def _pad_with(
    builder: OpBuilder, value: SSAValue, widths: Sequence[tuple[int, int]], fill: float
) -> SSAValue:
    """Pads with a fill value, also with integers that float32 cannot represent.

    The library takes the value as a float: inexact integers are padded as 0 between two XORs with
    the value.
    """
    data_type = declared_data_type(value)
    if data_type.is_float or not any(any(pair) for pair in widths):
        return builder.pad(value, widths, fill)
    number = int(number_as(fill, data_type.numpy))
    if number == float(np.float32(number)):
        return builder.pad(value, widths, number)
    mask = builder.full([1] * len(widths), number, element_of(value.type))
    value = builder.pad(builder.broadcasting("bitwise_xor", value, mask), widths)
    return builder.broadcasting("bitwise_xor", value, mask)


def _pad_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Pads with nonnegative widths, after a slice for the negative ones."""
    begins, ends, widths = _cut(op.shape("input"), _pad_widths(op))
    padding = [width for pair in widths for width in pair]
    if padding == op.parameter("padding"):
        return None
    value = builder.slice(builder.operand(op, "input"), begins, ends)
    if not any(padding):
        return value
    return builder.emit(
        "pad", [value], op.result_type, padding=padding, value=op.parameter("value")
    )


def _unpadded(op: CatalogueOp) -> Dimensions:
    """Labels of the dimensions that are not padded."""
    padding = op.parameter("padding")
    return all_but(op, {dim // 2 for dim, width in enumerate(padding) if width})


def _padding_on_cpu(op: CatalogueOp) -> dict[str, list[int] | float]:
    value = number_of(op.parameter("value"), declared_data_type(op.operands[0]))
    return {"before": op.parameter("padding")[::2], "value": value}


_PAD = (attribute("padding", INTEGERS), attribute("value", NUMBER, 0.0))

register(
    TTIRDefinition(
        "ttir.pad",
        (operand("input"),),
        _PAD,
        verify=_verify_pad,
        dimensions=_unpadded,
        numpy=_pad,
        primitives=_pad_primitives,
        lower=_lower_pad,
        moves=True,
        cpu=cpu_call("movement", _padding_on_cpu),
        rearranges=True,
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


# Tiles can only be padded after the elements; padding before them needs row-major layout.
for _name, _layout in (("pad", Layout.TILE), ("pad_row_major", Layout.ROW_MAJOR)):
    register(
        TTNNDefinition(
            f"ttnn.{_name}",
            (OperandSpec("input", layout=_layout, data_types=MOVED_ROWS),),
            _PAD,
            verify=_verify_library_pad,
            numpy=_pad,
            result_rules=(ResultRule(layout=_layout),),
            cpp=_cpp_pad,
            function="pad",
            flops=no_flops,
            call_kind=CallKind.SLICE,
            rearranges=True,
            participle="padded",
        )
    )
