"""The kinds of attributes that rows of the table name: Python, MLIR and C++."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import (
    BoolAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.core.enumerations import Word, WordAttribute
from ttcodegen.dialects.ttcore.dialect import DataTypeAttr
from ttcodegen.dialects.ttcore.tile import TILE_FORMATS
from ttcodegen.dialects.ttkernel.attributes import (
    BroadcastType,
    BroadcastTypeAttr,
    DestinationReuse,
    DestinationReuseAttr,
    EltwiseBinaryType,
    EltwiseBinaryTypeAttr,
    InputClamping,
    InputClampingAttr,
    ReduceDim,
    ReduceDimAttr,
    ReduceType,
    ReduceTypeAttr,
)


@dataclass(frozen=True, slots=True)
class AttributeKind:
    """How an attribute is made, checked, written in short between parentheses, and spelled in C++.

    `expected` completes 'should be ...'.
    """

    expected: str
    accepts: Callable[[Attribute], bool]
    encode: Callable[[Any], Attribute]
    parse: Callable[[AttrParser], Attribute]
    print: Callable[[Printer, Any], None]
    cpp: Callable[[Any], str]
    """Raises KeyError if C++ has no word for it."""


def _is_integer_of(attribute: Attribute, type_: IntegerType) -> bool:
    if not isinstance(attribute, IntegerAttr):
        return False
    return cast("IntegerAttr[IntegerType]", attribute).type == type_


def _boolean() -> AttributeKind:
    return AttributeKind(
        "true or false",
        lambda attribute: _is_integer_of(attribute, i1),
        BoolAttr.from_bool,
        lambda parser: BoolAttr.from_bool(parser.parse_boolean()),
        lambda printer, attribute: printer.print_string(_truth(attribute)),
        _truth,
    )


def _truth(attribute: BoolAttr) -> str:
    return "true" if attribute.value.data else "false"


def _integer(width: int) -> AttributeKind:
    type_ = {32: i32, 64: i64}[width]

    def parse(parser: AttrParser) -> Attribute:
        value = parser.parse_integer()
        if parser.parse_optional_punctuation(":") is not None:
            parser.parse_type()
        return IntegerAttr(value, type_)

    def spelled(attribute: IntegerAttr) -> str:
        return str(attribute.value.data)

    return AttributeKind(
        f"an i{width}",
        lambda attribute: _is_integer_of(attribute, type_),
        lambda value: IntegerAttr(value, type_),
        parse,
        lambda printer, attribute: printer.print_string(spelled(attribute)),
        spelled,
    )


def _text() -> AttributeKind:
    def quoted(attribute: StringAttr) -> str:
        escaped = attribute.data.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'

    return AttributeKind(
        "a string",
        lambda attribute: isinstance(attribute, StringAttr),
        StringAttr,
        lambda parser: StringAttr(parser.parse_str_literal()),
        lambda printer, attribute: printer.print_string_literal(attribute.data),
        quoted,
    )


def _words(attribute_type: type[WordAttribute[Word]], cpp: Mapping[Word, str]) -> AttributeKind:
    return AttributeKind(
        f"a #{attribute_type.name}",
        lambda attribute: isinstance(attribute, attribute_type),
        attribute_type,
        lambda parser: attribute_type.new(attribute_type.parse_parameter(parser)),
        lambda printer, attribute: attribute.print_parameter(printer),
        lambda attribute: cpp[attribute.data],
    )


def _data_type(
    spell: Callable[[str], str],
    formats: Collection[str] = frozenset(TILE_FORMATS),
    expected: str = "a #ttcore.supportedDataTypes",
) -> AttributeKind:
    return AttributeKind(
        expected,
        lambda attribute: isinstance(attribute, DataTypeAttr) and attribute.value.data in formats,
        lambda value: DataTypeAttr(value.mlir if isinstance(value, DataType) else value),
        lambda parser: DataTypeAttr.new(DataTypeAttr.parse_parameters(parser)),
        lambda printer, attribute: attribute.print_parameters(printer),
        lambda attribute: spell(f"DataFormat::{TILE_FORMATS[attribute.value.data].cpp}"),
    )


def _block_enumeration(cpp: str, words: Sequence[str]) -> AttributeKind:
    """Words that are enumerators in kernels/blocks."""
    return AttributeKind(
        f"one of {', '.join(words)}",
        lambda attribute: isinstance(attribute, StringAttr) and attribute.data in words,
        StringAttr,
        lambda parser: StringAttr(parser.parse_str_literal()),
        lambda printer, attribute: printer.print_string_literal(attribute.data),
        lambda attribute: f"blocks::{cpp}::{attribute.data}",
    )


NUMBERS = ("floating", "signed_integer", "unsigned_integer")
"""How bits may be interpreted, as kernels/blocks/row_order.hpp has it."""

REDUCTIONS = ("none", "sum", "prod", "min", "max")
"""What elements that are written to one place become, as kernels/blocks/scattering.hpp has it."""

PRINTED = ("f32", "bf16", "si32", "u32")
"""The data types of elements that kernels print, as kernels/blocks/printing.hpp has them."""

ATTRIBUTE_KINDS: dict[str, AttributeKind] = {
    "bool": _boolean(),
    "i32": _integer(32),
    "i64": _integer(64),
    "text": _text(),
    "element": AttributeKind(
        "i8, i16 or i32",
        lambda attribute: attribute in (i8, i16, i32),
        lambda value: value,
        lambda parser: parser.parse_type(),
        lambda printer, attribute: printer.print_attribute(attribute),
        lambda attribute: f"uint{attribute.width.data}_t",
    ),
    "number": _block_enumeration("Number", NUMBERS),
    "reduction": _block_enumeration("Reduction", REDUCTIONS),
    "printed": _block_enumeration("Printed", PRINTED),
    "dtype": _data_type(str),
    "integer_dtype": _data_type(
        str, ("si32", "u32", "u16"), "a #ttcore.supportedDataTypes of si32, u32 or u16"
    ),
    "dtype_number": _data_type(lambda enumerator: f"static_cast<uint32_t>({enumerator})"),
    "reduce_type": _words(
        ReduceTypeAttr,
        {
            ReduceType.SUM: "PoolType::SUM",
            ReduceType.MAX: "PoolType::MAX",
            ReduceType.AVG: "PoolType::AVG",
            ReduceType.MIN: "PoolType::MIN",
        },
    ),
    "reduce_dim": _words(
        ReduceDimAttr,
        {
            ReduceDim.ROW: "ReduceDim::REDUCE_ROW",
            ReduceDim.COL: "ReduceDim::REDUCE_COL",
            ReduceDim.SCALAR: "ReduceDim::REDUCE_SCALAR",
        },
    ),
    "bcast_type": _words(
        BroadcastTypeAttr,
        {
            BroadcastType.NONE: "BroadcastType::NONE",
            BroadcastType.COL: "BroadcastType::COL",
            BroadcastType.ROW: "BroadcastType::ROW",
            BroadcastType.SCALAR: "BroadcastType::SCALAR",
        },
    ),
    "eltwise_binary_type": _words(
        EltwiseBinaryTypeAttr,
        {
            EltwiseBinaryType.ADD: "EltwiseBinaryType::ELWADD",
            EltwiseBinaryType.SUB: "EltwiseBinaryType::ELWSUB",
            EltwiseBinaryType.MUL: "EltwiseBinaryType::ELWMUL",
        },
    ),
    "reuse_type": _words(
        DestinationReuseAttr,
        {
            DestinationReuse.DEST_TO_SRCA: "EltwiseBinaryReuseDestType::DEST_TO_SRCA",
            DestinationReuse.DEST_TO_SRCB: "EltwiseBinaryReuseDestType::DEST_TO_SRCB",
        },
    ),
    "input_clamping": _words(
        InputClampingAttr,
        {
            InputClamping.NONE: "InputClamping::None",
            InputClamping.CLAMP_TO_NEGATIVE: "InputClamping::ClampToNegative",
        },
    ),
    "any": AttributeKind(
        "an attribute",
        lambda _: True,
        lambda value: value,
        lambda parser: parser.parse_attribute(),
        lambda printer, attribute: printer.print_attribute(attribute),
        str,
    ),
}
"""The kinds that rows name."""
