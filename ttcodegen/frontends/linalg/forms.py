"""Assembly formats of linalg and tensor operations.

Named operations of linalg share one form, `ins(...) outs(...)` with attributes before or after it,
and a region that computes elements where they have one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    StringAttr,
    TensorType,
    i1,
    i32,
)
from xdsl.dialects.builtin import i64 as i64_type
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.parser import Parser, UnresolvedOperand

from ttcodegen.frontends.translation import Form, functional_form, make, operand_list

INPUTS = "operandSegmentSizes"


def linalg_form(parser: Parser, op_type: type[Operation]) -> Operation:
    """`{attributes} ins(%a : type) outs(%b : type) name = [...] (%x: type) {region} -> type`."""
    attributes = dict(parser.parse_optional_attr_dict())
    for name in [name for name in attributes if name.startswith(("arith.", "math."))]:
        # `{ arith.addf }` of a reduction: the operation that combines two elements.
        attributes["combiner"] = StringAttr(name)
        del attributes[name]
    if parser.parse_optional_keyword("dimension") is not None:
        parser.parse_punctuation("(")
        attributes["dimension"] = IntegerAttr(parser.parse_integer(), i64_type)
        parser.parse_punctuation(")")
    inputs, input_types = _group(parser, "ins")
    outputs, output_types = _group(parser, "outs")
    for name in ("permutation", "dimensions", "attrs"):
        if parser.parse_optional_keyword(name) is not None:
            parser.parse_punctuation("=")
            attributes[name] = parser.parse_attribute()
    region = _region(parser)
    regions = [] if region is None else [region]
    results: list[Attribute] = [t for t in output_types if isinstance(t, TensorType)]
    position = parser.pos
    if parser.parse_optional_punctuation("->") is not None and _types(parser) != results:
        parser.raise_error("the results have other types than the outs", position, parser.pos)
    attributes[INPUTS] = DenseArrayBase.from_list(i32, [len(inputs), len(outputs)])
    operands, types = [*inputs, *outputs], [*input_types, *output_types]
    return make(parser, op_type, operands, types, results, attributes, regions)


def _group(parser: Parser, word: str) -> tuple[list[UnresolvedOperand], list[Attribute]]:
    if parser.parse_optional_keyword(word) is None:
        return [], []
    parser.parse_punctuation("(")
    operands = parser.parse_comma_separated_list(
        parser.Delimiter.NONE, parser.parse_unresolved_operand
    )
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation(")")
    return operands, list(types)


def _region(parser: Parser) -> Region | None:
    if parser.parse_optional_punctuation("(") is not None:
        arguments: list[Parser.Argument] = []
        while (argument := parser.parse_optional_argument()) is not None:
            arguments.append(argument)
            parser.parse_optional_punctuation(",")
        parser.parse_punctuation(")")
        return parser.parse_region(arguments)
    return parser.parse_optional_region()


def _types(parser: Parser) -> list[Attribute]:
    if parser.parse_optional_punctuation("(") is None:
        return [parser.parse_type()]
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation(")")
    return list(types)


def _yield_form(parser: Parser, op_type: type[Operation]) -> Operation:
    """`%a, %b : type, type`."""
    operand = parser.parse_optional_unresolved_operand()
    operands: list[UnresolvedOperand] = []
    while operand is not None:
        operands.append(operand)
        more = parser.parse_optional_punctuation(",") is not None
        operand = parser.parse_unresolved_operand() if more else None
    types: list[Attribute] = []
    if operands:
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    return make(parser, op_type, operands, types, [], {})


def _index_form(parser: Parser, op_type: type[Operation]) -> Operation:
    """`1 : index`."""
    dim = IntegerAttr(parser.parse_integer(), i64_type)
    parser.parse_punctuation(":")
    return op_type.create(result_types=[parser.parse_type()], attributes={"dim": dim})


def _reshape_form(parser: Parser, op_type: type[Operation]) -> Operation:
    """`%a [[0, 1]] output_shape [2, 3] : type into type`."""
    operand = parser.parse_unresolved_operand()
    attributes: dict[str, Attribute] = {"reassociation": parser.parse_attribute()}
    if parser.parse_optional_keyword("output_shape") is not None:
        attributes["output_shape"] = parser.parse_attribute()
    return _between(parser, op_type, operand, attributes, "into")


def _cast_form(parser: Parser, op_type: type[Operation]) -> Operation:
    """`%a : type to type`."""
    return _between(parser, op_type, parser.parse_unresolved_operand(), {}, "to")


def _between(
    parser: Parser,
    op_type: type[Operation],
    operand: UnresolvedOperand,
    attributes: dict[str, Attribute],
    word: str,
    regions: Sequence[Region] = (),
) -> Operation:
    parser.parse_punctuation(":")
    source = parser.parse_type()
    parser.parse_keyword(word)
    return make(parser, op_type, [operand], [source], [parser.parse_type()], attributes, regions)


def _pad_form(parser: Parser, op_type: type[Operation]) -> Operation:
    """`%a nofold low[0, 1] high[0, 1] {region} : type to type`, with static widths."""
    operand = parser.parse_unresolved_operand()
    parser.parse_optional_keyword("nofold")
    attributes: dict[str, Attribute] = {}
    for name in ("low", "high"):
        parser.parse_keyword(name)
        attributes[name] = parser.parse_attribute()
    region = parser.parse_region()
    return _between(parser, op_type, operand, attributes, "to", [region])


def _slice_form(parser: Parser, op_type: type[Operation]) -> Operation:
    """`%a[begins] [sizes] [steps] : type to type`, with static bounds."""
    operand = parser.parse_unresolved_operand()
    attributes = {name: parser.parse_attribute() for name in ("offsets", "sizes", "strides")}
    return _between(parser, op_type, operand, attributes, "to")


def _concat_form(parser: Parser, op_type: type[Operation]) -> Operation:
    """`dim(1) %a, %b : (types) -> type`."""
    parser.parse_keyword("dim")
    parser.parse_punctuation("(")
    dim = IntegerAttr(parser.parse_integer(), i64_type)
    parser.parse_punctuation(")")
    operation = functional_form(parser, op_type)
    operation.attributes["dim"] = dim
    return operation


def _extract_form(parser: Parser, op_type: type[Operation]) -> Operation:
    """`%a[%i, %j] : type`."""
    operand = parser.parse_unresolved_operand()
    places = parser.parse_comma_separated_list(
        parser.Delimiter.SQUARE, parser.parse_unresolved_operand
    )
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    element = cast("TensorType[Attribute]", type_).element_type
    types = [type_, *[IndexType()] * len(places)]
    return make(parser, op_type, [operand, *places], types, [element], {})


def element_form(parser: Parser, op_type: type[Operation]) -> Operation:
    """`%a, %b fastmath<flags> : type`, the type of the operands; tests result in i1."""
    operands = operand_list(parser)
    if parser.parse_optional_keyword("fastmath") is not None:
        parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_identifier)
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    result = i1 if op_type.name in _TESTS else type_
    return make(parser, op_type, operands, [type_] * len(operands), [result], {})


_TESTS = frozenset({"math.isfinite", "math.isinf", "math.isnan"})
ELEMENTS = ("arith.remf", "math.erfc", *sorted(_TESTS))
"""Scalar operations that xDSL lacks, all with the same assembly format."""


def _assert_form(parser: Parser, op_type: type[Operation]) -> Operation:
    """`%a, "message"`."""
    operand = parser.parse_unresolved_operand()
    parser.parse_punctuation(",")
    message = StringAttr(parser.parse_str_literal())
    return make(parser, op_type, [operand], [i1], [], {"msg": message})


ASSERT: dict[str, Form | None] = {"assert": _assert_form}
"""Assertions that torch-mlir puts into the bodies of generics."""

TENSOR: dict[str, Form | None] = {
    "cast": _cast_form,
    "collapse_shape": _reshape_form,
    "concat": _concat_form,
    "empty": None,
    "expand_shape": _reshape_form,
    "extract": _extract_form,
    "extract_slice": _slice_form,
    "pad": _pad_form,
    "yield": _yield_form,
}
"""Operations of the tensor dialect."""

UNSUPPORTED = (
    "batch_reduce_matmul", "conv_1d", "conv_1d_ncw_fcw",
    "conv_1d_nwc_wcf", "conv_2d", "conv_2d_ngchw_fgchw", "conv_2d_ngchw_gfchw",
    "conv_2d_nhwgc_gfhwc", "conv_3d", "conv_3d_ncdhw_fcdhw", "conv_3d_ndhwc_dhwcf",
    "depthwise_conv_1d_ncw_cw", "depthwise_conv_1d_nwc_wc", "depthwise_conv_2d_nhwc_hwcm",
    "depthwise_conv_3d_ndhwc_dhwc",
    "mmt4d", "pooling_ncw_max", "pooling_ncw_sum", "pooling_ndhwc_max", "pooling_ndhwc_min",
    "pooling_ndhwc_sum", "pooling_nhwc_max_unsigned", "pooling_nhwc_min", "pooling_nwc_max",
    "pooling_nwc_sum", "quantized_batch_matmul", "quantized_matmul",
    "winograd_filter_transform", "winograd_input_transform", "winograd_output_transform",
)  # fmt: skip
"""Operations without a translation, parsed so that one error lists all of them."""

BODY: dict[str, Form | None] = {"index": _index_form, "yield": _yield_form}
"""Operations that occur only in regions of linalg operations."""


def inputs_and_outputs(op: Operation) -> int:
    """Counts the input operands; the others are initial values of results."""
    sizes = op.attributes[INPUTS]
    assert isinstance(sizes, DenseArrayBase)
    return int(sizes.get_values()[0])


def integers(value: Attribute | None, default: Sequence[int] = ()) -> list[int]:
    """Returns the integers of `[1, 2]`, `array<i64: 1, 2>` or `dense<...>`."""
    from ttcodegen.dialects.core.datatypes import constant_array

    if value is None:
        return list(default)
    if isinstance(value, DenseArrayBase):
        return [int(number) for number in value.get_values()]
    if isinstance(value, ArrayAttr):
        return [int(each.value.data) for each in cast("Any", value).data]
    return [int(number) for number in constant_array(value).flat]


def body_of(op: Operation) -> Block | None:
    """Returns the block of the operation's body, if it has one."""
    return op.regions[0].block if op.regions else None
