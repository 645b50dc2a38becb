"""Custom assembly formats of TTIR and EmitC operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import (
    FunctionType,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    TupleType,
    UnitAttr,
    i32,
)
from xdsl.dialects.utils import parse_func_op_like
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.parser.core import UnresolvedOperand
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.ttcore.device import DeviceAttr

# Assembly formats of EmitC (https://mlir.llvm.org/docs/Dialects/EmitC/).
#
# Operations without a custom format, such as `emitc.constant` and `emitc.variable`, are generic in
# MLIR, too.

Form = Callable[[Parser, type[Operation]], Operation]


def _operands(
    parser: Parser, names: Sequence[UnresolvedOperand], types: Sequence[Attribute]
) -> list[SSAValue]:
    if len(names) != len(types):
        parser.raise_error(f"{len(names)} operands, but {len(types)} types of operands")
    return [parser.resolve_operand(name, type_) for name, type_ in zip(names, types, strict=True)]


def _inherent(attributes: dict[str, Attribute], *names: str) -> dict[str, Attribute]:
    """Moves inherent attributes of these names out of an attribute dictionary."""
    return {name: attributes.pop(name) for name in names if name in attributes}


def _include(parser: Parser, op_type: type[Operation]) -> Operation:
    """`<"header">` or `"header"`."""
    standard = parser.parse_optional_punctuation("<") is not None
    properties: dict[str, Attribute] = {"include": StringAttr(parser.parse_str_literal())}
    if standard:
        parser.parse_punctuation(">")
        properties["is_standard_include"] = UnitAttr()
    return op_type.create(properties=properties, attributes=parser.parse_optional_attr_dict())


def _call_opaque(parser: Parser, op_type: type[Operation]) -> Operation:
    """`"callee"(%operands) {args = [...], template_args = [...]} : (types) -> types`."""
    properties: dict[str, Attribute] = {"callee": StringAttr(parser.parse_str_literal())}
    return _called(parser, op_type, properties, "args", "template_args")


def _call(parser: Parser, op_type: type[Operation]) -> Operation:
    """`@callee(%operands) : (types) -> types`."""
    properties: dict[str, Attribute] = {"callee": SymbolRefAttr(parser.parse_symbol_name())}
    return _called(parser, op_type, properties, "arg_attrs", "res_attrs")


def _called(
    parser: Parser, op_type: type[Operation], properties: dict[str, Attribute], *names: str
) -> Operation:
    operands = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, parser.parse_unresolved_operand
    )
    attributes = parser.parse_optional_attr_dict()
    properties |= _inherent(attributes, *names)
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    if not isinstance(type_, FunctionType):
        parser.raise_error("expected the type of a function")
    return op_type.create(
        operands=_operands(parser, operands, type_.inputs.data),
        result_types=type_.outputs.data,
        properties=properties,
        attributes=attributes,
    )


def _verbatim(parser: Parser, op_type: type[Operation]) -> Operation:
    """`"text" args %operands : types`."""
    properties: dict[str, Attribute] = {"value": StringAttr(parser.parse_str_literal())}
    operands: list[SSAValue] = []
    if parser.parse_optional_keyword("args") is not None:
        names = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, parser.parse_unresolved_operand
        )
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        operands = _operands(parser, names, types)
    attributes = parser.parse_optional_attr_dict()
    return op_type.create(operands=operands, properties=properties, attributes=attributes)


def _literal(parser: Parser, op_type: type[Operation]) -> Operation:
    """`"text" : type`."""
    properties: dict[str, Attribute] = {"value": StringAttr(parser.parse_str_literal())}
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    return op_type.create(
        result_types=[parser.parse_type()], properties=properties, attributes=attributes
    )


def _func(parser: Parser, op_type: type[Operation]) -> Operation:
    """`@name(%arguments) -> type attributes {...} {...}`."""
    name, inputs, outputs, region, extra, arg_attrs, res_attrs = parse_func_op_like(
        parser, reserved_attr_names=("sym_name", "function_type")
    )
    properties: dict[str, Attribute] = {
        "sym_name": StringAttr(name),
        "function_type": FunctionType.from_lists(list(inputs), list(outputs)),
    }
    if arg_attrs is not None:
        properties["arg_attrs"] = arg_attrs
    if res_attrs is not None:
        properties["res_attrs"] = res_attrs
    attributes = {} if extra is None else dict(extra.data)
    properties |= _inherent(attributes, "specifiers")
    return op_type.create(regions=[region], properties=properties, attributes=attributes)


def _return(parser: Parser, op_type: type[Operation]) -> Operation:
    """`%value : type`, or nothing."""
    attributes = parser.parse_optional_attr_dict()
    operands: list[SSAValue] = []
    name = parser.parse_optional_unresolved_operand()
    if name is not None:
        parser.parse_punctuation(":")
        operands.append(parser.resolve_operand(name, parser.parse_type()))
    return op_type.create(operands=operands, attributes=attributes)


def _lvalue(parser: Parser) -> Attribute:
    """Parses the type of a variable, or in angle brackets its value type."""
    from xdsl.dialects.emitc import EmitC_LValueType

    if parser.parse_optional_punctuation("<") is None:
        return parser.parse_type()
    held = parser.parse_type()
    parser.parse_punctuation(">")
    return EmitC_LValueType(held)  # pyright: ignore[reportArgumentType]


def _assign(parser: Parser, op_type: type[Operation]) -> Operation:
    """`%value : type to %variable : type`."""
    value = parser.parse_unresolved_operand()
    parser.parse_punctuation(":")
    value_type = parser.parse_type()
    parser.parse_keyword("to")
    variable = parser.parse_unresolved_operand()
    parser.parse_punctuation(":")
    operands = _operands(parser, [variable, value], [_lvalue(parser), value_type])
    return op_type.create(operands=operands, attributes=parser.parse_optional_attr_dict())


def _load(parser: Parser, op_type: type[Operation]) -> Operation:
    """`%variable : <type>`, with the value type of the variable."""
    from xdsl.dialects.emitc import EmitC_LValueType

    name = parser.parse_unresolved_operand()
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    type_ = _lvalue(parser)
    if not isinstance(type_, EmitC_LValueType):
        parser.raise_error(f"expected a variable, found a value of type {type_}")
    operand = parser.resolve_operand(name, type_)
    return op_type.create(
        operands=[operand], result_types=[type_.value_type], attributes=attributes
    )


def _subscript(parser: Parser, op_type: type[Operation]) -> Operation:
    """`%value[%indices] : (types) -> type`."""
    value = parser.parse_unresolved_operand()
    indices = parser.parse_comma_separated_list(
        parser.Delimiter.SQUARE, parser.parse_unresolved_operand
    )
    return _typed(parser, op_type, [value, *indices])


def _cast(parser: Parser, op_type: type[Operation]) -> Operation:
    """`%value : type to type`."""
    name = parser.parse_unresolved_operand()
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    operand = parser.resolve_operand(name, parser.parse_type())
    parser.parse_keyword("to")
    return op_type.create(
        operands=[operand], result_types=[parser.parse_type()], attributes=attributes
    )


def _operator(parser: Parser, op_type: type[Operation]) -> Operation:
    """`%operands : (types) -> type`."""
    names = parser.parse_comma_separated_list(
        parser.Delimiter.NONE, parser.parse_unresolved_operand
    )
    return _typed(parser, op_type, names)


def _typed(
    parser: Parser, op_type: type[Operation], names: Sequence[UnresolvedOperand]
) -> Operation:
    """Parses attributes and `: (types) -> type` after the operands of an op."""
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    if not isinstance(type_, FunctionType):
        parser.raise_error("expected the type of a function")
    return op_type.create(
        operands=_operands(parser, names, type_.inputs.data),
        result_types=type_.outputs.data,
        attributes=attributes,
    )


_OPERATORS = (
    *("add", "sub", "mul", "div", "rem", "logical_and", "logical_or", "logical_not"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"),
    *("bitwise_left_shift", "bitwise_right_shift", "unary_minus", "unary_plus"),
)

EMITC_FORMS: dict[str, Form] = {
    "emitc.include": _include,
    "emitc.call_opaque": _call_opaque,
    "emitc.call": _call,
    "emitc.verbatim": _verbatim,
    "emitc.literal": _literal,
    "emitc.func": _func,
    "emitc.return": _return,
    "emitc.assign": _assign,
    "emitc.load": _load,
    "emitc.subscript": _subscript,
    "emitc.cast": _cast,
    **{f"emitc.{name}": _operator for name in _OPERATORS},
}


# Custom assembly formats in TTIR files, after tt-mlir's op definitions (2025 and 2026).

ParseForm = Callable[[Parser, type[Operation]], Operation]


@dataclass(frozen=True)
class CustomForm:
    """Custom assembly format: the op it creates, and the parser after the op's name."""

    op_name: str
    parse: ParseForm


def _empty(parser: Parser, op_type: type[Operation]) -> Operation:
    """`() {attributes} : type`; the documents of 2024 write `() -> type`.

    Dynamic sizes in the brackets are parsed; the dynamic type is refused later.
    """
    parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    result_type = parser.parse_type()
    if isinstance(result_type, FunctionType) and len(result_type.outputs.data) == 1:
        result_type = result_type.outputs.data[0]
    return op_type.create(result_types=[result_type], attributes=attributes)


def _to_layout(parser: Parser, op_type: type[Operation]) -> Operation:
    """`%input, %output : type into type hostInfo = #layout {attributes} -> type`."""
    source = parser.parse_unresolved_operand()
    parser.parse_punctuation(",")
    destination = parser.parse_unresolved_operand()
    parser.parse_punctuation(":")
    source_type = parser.parse_type()
    parser.parse_keyword("into")
    destination_type = parser.parse_type()
    properties: dict[str, Attribute] = {}
    if parser.parse_optional_keyword("hostInfo") is not None:
        parser.parse_punctuation("=")
        properties["layout"] = parser.parse_attribute()
    attributes = parser.parse_optional_attr_dict()
    result_types: list[Attribute] = []
    if parser.parse_optional_punctuation("->") is not None:
        result_types.append(parser.parse_type())
    return op_type.create(
        operands=[
            parser.resolve_operand(source, source_type),
            parser.resolve_operand(destination, destination_type),
        ],
        result_types=result_types,
        properties=properties,
        attributes=attributes,
    )


def _unary(parser: Parser, op_type: type[Operation]) -> Operation:
    """`%input {attributes} : type -> type`."""
    operand = parser.parse_unresolved_operand()
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    operand_type = parser.parse_type()
    parser.parse_punctuation("->")
    return op_type.create(
        operands=[parser.resolve_operand(operand, operand_type)],
        result_types=[parser.parse_type()],
        attributes=attributes,
    )


def _called_operation(parser: Parser, op_type: type[Operation]) -> Operation:
    """`(%inputs) {attributes} : (types) -> (types)`."""
    names = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, parser.parse_unresolved_operand
    )
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    position = parser.pos
    type_ = parser.parse_type()
    if not isinstance(type_, FunctionType) or len(type_.inputs.data) != len(names):
        parser.raise_error("expected the type of a function of these inputs", position)
    return op_type.create(
        operands=[
            parser.resolve_operand(name, input_)
            for name, input_ in zip(names, type_.inputs.data, strict=True)
        ],
        result_types=type_.outputs.data,
        attributes=attributes,
    )


def _module_wrapper(parser: Parser, op_type: type[Operation]) -> Operation:
    """`attributes {...} { operations }`."""
    attributes = parser.parse_optional_attr_dict_with_keyword()
    region = parser.parse_region()
    return op_type.create(
        regions=[region], attributes={} if attributes is None else attributes.data
    )


def _device(parser: Parser, op_type: type[Operation]) -> Operation:
    """`@name = <description> {attributes}`."""
    properties: dict[str, Attribute] = {"sym_name": parser.parse_symbol_name()}
    parser.parse_punctuation("=")
    position = parser.pos
    attribute = parser.parse_optional_attribute()
    if attribute is None:
        description = DeviceAttr.parse_parameter(parser)
        try:
            attribute = DeviceAttr.new(description)
        except VerifyException as error:
            parser.raise_error(str(error), position)
    if isinstance(attribute, DeviceAttr):
        properties["device_attr"] = attribute
    attributes = parser.parse_optional_attr_dict()
    return op_type.create(properties=properties, attributes=attributes)


def _tuple(parser: Parser, op_type: type[Operation]) -> Operation:
    """`%elements : tuple<types>`."""
    names = parser.parse_optional_undelimited_comma_separated_list(
        parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
    )
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    if not isinstance(type_, TupleType) or len(type_.types) != len(names or ()):
        parser.raise_error("expected the type of a tuple with as many elements")
    return op_type.create(
        operands=[
            parser.resolve_operand(name, element)
            for name, element in zip(names or (), type_.types, strict=True)
        ],
        result_types=[type_],
        attributes=attributes,
    )


def _tuple_element(parser: Parser, op_type: type[Operation]) -> Operation:
    """`%tuple[index] : (tuple<types>) -> type`."""
    name = parser.parse_unresolved_operand()
    with parser.in_square_brackets():
        index = parser.parse_integer(allow_boolean=False, allow_negative=False)
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    if not isinstance(type_, FunctionType) or len(type_.inputs.data) != 1:
        parser.raise_error("expected the type of a function of one tuple")
    return op_type.create(
        operands=[parser.resolve_operand(name, type_.inputs.data[0])],
        result_types=type_.outputs.data,
        properties={"index": IntegerAttr(index, i32)},
        attributes=attributes,
    )


def _load_cached(parser: Parser, op_type: type[Operation]) -> Operation:
    """`(@function, [%inputs]) {attributes} : (types) -> types`."""
    with parser.in_parens():
        properties: dict[str, Attribute] = {"callee": SymbolRefAttr(parser.parse_symbol_name())}
        parser.parse_punctuation(",")
        names = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, parser.parse_unresolved_operand
        )
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    position = parser.pos
    type_ = parser.parse_type()
    if not isinstance(type_, FunctionType) or len(type_.inputs.data) != len(names):
        parser.raise_error("expected the type of a function of these inputs", position)
    return op_type.create(
        operands=[
            parser.resolve_operand(name, input_)
            for name, input_ in zip(names, type_.inputs.data, strict=True)
        ],
        result_types=type_.outputs.data,
        properties=properties,
        attributes=attributes,
    )


def _subgraph(parser: Parser, op_type: type[Operation]) -> Operation:
    """`@function ins(%inputs : types) outs(%outputs : types) {attributes} : types`.

    Becomes a call of the function with the inputs; the outputs are destinations of a kernel.
    """
    callee = parser.parse_symbol_name()
    operands: dict[str, list[SSAValue]] = {"ins": [], "outs": []}
    for group, values in operands.items():
        if parser.parse_optional_keyword(group) is None:
            continue
        with parser.in_parens():
            names = parser.parse_optional_undelimited_comma_separated_list(
                parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
            )
            for name, type_ in zip(names or (), _types(parser, len(names or ())), strict=True):
                values.append(parser.resolve_operand(name, type_))
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    return op_type.create(
        operands=operands["ins"],
        result_types=parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type),
        properties={"callee": SymbolRefAttr(callee)},
        attributes=attributes,
    )


def _types(parser: Parser, count: int) -> Sequence[Attribute]:
    """Parses `: types`, `count` of them."""
    if count == 0:
        return []
    parser.parse_punctuation(":")
    position = parser.pos
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    if len(types) != count:
        parser.raise_error(f"expected {count} types, one for each value", position)
    return types


CUSTOM_FORMS: dict[str, CustomForm] = {
    "ttir.empty": CustomForm("ttir.empty", _empty),
    "tensor.empty": CustomForm("tensor.empty", _empty),
    "ttir.to_layout": CustomForm("ttir.to_layout", _to_layout),
    "ttir.ttnn_metal_layout_cast": CustomForm("ttir.ttnn_metal_layout_cast", _unary),
    "ttir.tt_lang_op": CustomForm("ttir.tt_lang_op", _called_operation),
    "ttcore.device_module": CustomForm("ttcore.device_module", _module_wrapper),
    "ttcore.cpu_module": CustomForm("ttcore.cpu_module", _module_wrapper),
    "ttcore.device": CustomForm("ttcore.device", _device),
    "tt.device_module": CustomForm("ttcore.device_module", _module_wrapper),
    "tt.cpu_module": CustomForm("ttcore.cpu_module", _module_wrapper),
    "tt.device": CustomForm("ttcore.device", _device),
    "ttcore.load_cached": CustomForm("ttcore.load_cached", _load_cached),
    "tt.load_cached": CustomForm("ttcore.load_cached", _load_cached),
    "ttcore.tuple": CustomForm("ttcore.tuple", _tuple),
    "ttcore.get_tuple_element": CustomForm("ttcore.get_tuple_element", _tuple_element),
    "tt.tuple": CustomForm("ttcore.tuple", _tuple),
    "tt.get_tuple_element": CustomForm("ttcore.get_tuple_element", _tuple_element),
    "ttnn.d2m_subgraph": CustomForm("func.call", _subgraph),
    **{name: CustomForm(name, form) for name, form in EMITC_FORMS.items()},
}
