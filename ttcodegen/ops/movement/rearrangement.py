"""Elements in another arrangement that a pattern describes, or read as another type."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import Float16Type, Float64Type, TensorType
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, element_of, normalized_data_type, shape_of
from ttcodegen.dialects.operations.attribute_kinds import STRING
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import Argument, CppCalls, Text, cpp_call, cpp_text, operand_
from ttcodegen.ops.core.cpu_lowering import cpu_call
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
from ttcodegen.ops.core.shape_checks import expect_shape
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.core.work import no_flops
from ttcodegen.ops.elementwise.registration import UNARY_HEADER

if TYPE_CHECKING:
    import numpy

# rearrange

_TOKEN = re.compile(r"\s*(?:([A-Za-z_]\w*|1)|([()]))")


@dataclass(frozen=True)
class Arrangement:
    """Parsed rearrangement pattern, such as `b (h w) -> (b h) w`.

    It has the axes that the input dimensions divide into, their sizes, their new order, and the
    dimensions that they are merged into.
    """

    split: list[int]
    """The shape of the input with its groups taken apart."""
    permutation: list[int]
    result: list[int]


def _side(text: str) -> list[list[str]]:
    """The groups of axes of one side of a pattern; raises ValueError if it is malformed."""
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


def _learn(sizes: dict[str, int], groups: list[list[str]], shape: tuple[int, ...]) -> None:
    """Sizes of axes from dimensions that hold at most one unknown one."""
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
    """Reads a pattern; what it does not say of sizes, the shapes do. Raises ValueError if it is
    malformed or does not fit them."""
    left_text, arrow, right_text = pattern.partition("->")
    if not arrow:
        raise ValueError("expected two sides with '->' between them")
    left, right = _side(left_text), _side(right_text)
    names = [[axis for group in groups for axis in group] for groups in (left, right)]
    if sorted(names[0]) != sorted(names[1]) or len(set(names[0])) != len(names[0]):
        raise ValueError("expected the same axes on both sides, each of them once")
    sizes: dict[str, int] = {}
    # One side may need what the other one says, and its groups in any order.
    for _ in range(len(names[0]) + 1):
        _learn(sizes, left, shape)
        _learn(sizes, right, result)
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
    """Bits of an element of the source; None if it has no fixed number."""
    width = getattr(element, "bitwidth", None)
    return width if isinstance(width, int) else None


def _verify_bitcast(op: CatalogueOp) -> None:
    """Elements have as many bits as before; the shape stays."""
    found = element_of(op.operands[0].type), element_of(op.result_type)
    widths = [_width(element) for element in found]
    if None in widths or widths[0] != widths[1]:
        raise VerifyException(
            f"{op.name}: expected elements of as many bits as {found[0]}, found {found[1]}"
        )
    expect_shape(op, op.shape("input"))


def _other_bits(op: CatalogueOp) -> str | None:
    """Floats of these types are others on the device."""
    elements = [element_of(value.type) for value in (*op.operands, *op.results)]
    if elements[0] != elements[1]:
        for element in elements:
            if isinstance(element, Float16Type | Float64Type):
                return f"the bits of {element} are not kept: it is another type on the device"
    return None


def _bitcast(call: Call) -> Array:
    source, target = np.dtype(call.operand_dtypes["input"][0]), np.dtype(call.results[0].dtype)
    # `ascontiguousarray` would make a dimension of none.
    found = call.array("input").astype(source, order="C").view(target)
    return found.astype(np.float32) if target.itemsize == 2 and _is_short(target) else found


def _is_short(dtype: numpy.dtype) -> bool:
    """Floats of 16 bits are computed with in 32."""
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
