"""Padding with a number."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.dialects.operations.attribute_kinds import INTEGERS, NUMBER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import CppCalls, Text, cpp_text
from ttcodegen.ops.core.constant_values import number_as
from ttcodegen.ops.core.cpu_lowering import cpu_call, number_of
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
from ttcodegen.ops.core.dimensions import Dimensions, all_but
from ttcodegen.ops.core.shape_checks import expect_element, expect_shape
from ttcodegen.ops.core.traits import CallKind
from ttcodegen.ops.core.work import no_flops
from ttcodegen.ops.movement.data_movement import MOVED_ROWS, MOVEMENT


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
    """Begins and ends of what negative widths leave, and the widths that are not negative."""
    begins = [max(0, -before) for before, _ in widths]
    ends = [size + min(0, after) for size, (_, after) in zip(shape, widths, strict=True)]
    return begins, ends, [(max(0, before), max(0, after)) for before, after in widths]


def _verify_pad(op: CatalogueOp) -> None:
    """Every dimension grows by its two widths; negative ones cut off what is there."""
    widths = _pad_widths(op)
    shape = op.shape("input")
    begins, ends, _ = _cut(shape, widths)
    if any(begin > end for begin, end in zip(begins, ends, strict=True)):
        raise VerifyException(f"{op.name}: widths {widths} cut off more than {shape} has")
    expect_shape(op, [size + sum(width) for size, width in zip(shape, widths, strict=True)])
    expect_element(op, "input")


def _pad(call: Call) -> Array:
    array = call.array("input")
    begins, ends, widths = _cut(array.shape, _pairs(call["padding"]))
    part = array[tuple(map(slice, begins, ends))]
    fill = number_as(call["value"], array.dtype.name)
    return np.pad(part, widths, constant_values=fill) if widths else part


def _lower_pad(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Padding of dimensions beyond the lowest three is joined on as blocks: the library pads at
    most the lowest three dimensions of tensors of rank above four (docs/library-rules.md)."""
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
    """The library takes the number as a float: integers that are none are padded with 0 between
    two exclusive disjunctions."""
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
    """Kernels only add; what negative widths cut off is a slice."""
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
    """The dimensions that nothing is added to."""
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


# Tiles are padded at the back only; padding at the front needs the rows themselves.
for _name, _layout in (("pad", Layout.TILE), ("pad_row_major", Layout.ROW_MAJOR)):
    register(
        TTNNDefinition(
            f"ttnn.{_name}",
            (OperandSpec("input", layout=_layout, data_types=MOVED_ROWS),),
            _PAD,
            verify=_verify_pad,
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
