"""Custom assembly formats of StableHLO operations.

Most share one format: operands, named numbers and keywords, separated by commas in any order, then
attributes and types (`parse_items`). The others have their own functions. Source: the dialect's
operation definitions (StableHLO 1.0 to 1.17).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import FunctionType, TupleType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand

from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp, part_element, python_value

Form = Callable[[type[StableHLOOp], Parser], StableHLOOp]


def parse_form(cls: type[StableHLOOp], parser: Parser) -> Operation:
    """Parses an operation after its name."""
    if cls.name.startswith("sdy."):
        form = _SDY_FORMS.get(cls.short_name, parse_items)
    else:
        form = _FORMS.get(cls.short_name, parse_items)
    return form(cls, parser)


def _made(
    cls: type[StableHLOOp],
    operands: Sequence[SSAValue],
    results: Sequence[Attribute],
    attributes: dict[str, Attribute] | None = None,
    given: dict[str, Any] | None = None,
    regions: Sequence[Region] = (),
) -> StableHLOOp:
    op = cls.create(
        operands=operands, result_types=results, attributes=attributes or {}, regions=regions
    )
    op.given.update(given or {})
    return op


def parse_items(cls: type[StableHLOOp], parser: Parser) -> StableHLOOp:
    """`%a, %b, dim = 0, name = [1, 2] {attributes} : types`, with or without parentheses."""
    operands: list[UnresolvedOperand] = []
    given: dict[str, Any] = {}
    attributes: dict[str, Attribute] = {}
    position = 0
    bracketed = parser.parse_optional_punctuation("(") is not None
    while True:
        if (operand := parser.parse_optional_unresolved_operand()) is not None:
            operands.append(operand)
        elif (name := parser.parse_optional_identifier()) is not None:
            if parser.parse_optional_punctuation("=") is not None:
                given[name] = _value(parser)
            else:
                given[_POSITIONAL.get((cls.short_name, position), name)] = name
                position += 1
        elif (text := parser.parse_optional_str_literal()) is not None:
            given["name"] = text
            continue  # The operands of a composite come without a comma.
        elif (symbol := parser.parse_optional_symbol_name()) is not None:
            given["call_target_name"] = symbol.data
        if cls.short_name == "slice" and (bounds := _slice_bounds(parser)) is not None:
            given |= bounds
        if cls.short_name == "get_tuple_element" and parser.parse_optional_punctuation("["):
            given["index"] = parser.parse_integer()
            parser.parse_punctuation("]")
        if bracketed and parser.parse_optional_punctuation(")") is not None:
            bracketed = False
            # `chlo.top_k(%a, k = 8)`, `custom_call @f(%a)`: the list ends here.
            break
        if parser.parse_optional_punctuation(",") is None:
            if parser.parse_optional_punctuation("(") is None:
                break
            bracketed = True
            if parser.parse_optional_punctuation(")") is not None:
                break
    attributes |= parser.parse_optional_attr_dict()
    return _parse_types(cls, parser, operands, attributes, given)


_POSITIONAL = {
    ("compare", 0): "comparison_direction",
    ("compare", 1): "compare_type",
}
"""Keywords that are positional attributes."""


def _value(parser: Parser) -> Any:
    """Parses the value after `name =`."""
    if parser.parse_optional_punctuation("[") is not None:
        values: list[Any] = []
        if parser.parse_optional_punctuation("]") is None:
            values.append(_value(parser))
            while parser.parse_optional_punctuation(",") is not None:
                values.append(_value(parser))
            parser.parse_punctuation("]")
        if parser.parse_optional_keyword("x") is not None:
            return values, _value(parser)
        return values
    if parser.parse_optional_punctuation("<") is not None:
        # The algorithm of a dot requests a precision; the device has its own.
        return _skipped(parser)
    if parser.parse_optional_punctuation("?") is not None:
        return "?"
    number = parser.parse_optional_number()
    if number is not None:
        return number
    if (name := parser.parse_optional_identifier()) is not None:
        return {"true": True, "false": False}.get(name, name)
    return python_value(parser.parse_attribute())


def _skipped(parser: Parser) -> str:
    depth = 1
    while depth:
        token = parser._consume_token()  # pyright: ignore[reportPrivateUsage]
        depth += {"<": 1, ">": -1}.get(token.text, 0)
        if not token.text:
            parser.raise_error("expected '>'")
    return ""


def _slice_bounds(parser: Parser) -> dict[str, list[int]] | None:
    """`[0:4, 1:8:2]`."""
    if parser.parse_optional_punctuation("[") is None:
        return None
    bounds: dict[str, list[int]] = {"start_indices": [], "limit_indices": [], "strides": []}
    if parser.parse_optional_punctuation("]") is not None:
        return bounds
    while True:
        bounds["start_indices"].append(parser.parse_integer())
        parser.parse_punctuation(":")
        bounds["limit_indices"].append(parser.parse_integer())
        stride = parser.parse_integer() if parser.parse_optional_punctuation(":") else 1
        bounds["strides"].append(stride)
        if parser.parse_optional_punctuation(",") is None:
            break
    parser.parse_punctuation("]")
    return bounds


def _parse_types(
    cls: type[StableHLOOp],
    parser: Parser,
    operands: Sequence[UnresolvedOperand],
    attributes: dict[str, Attribute],
    given: dict[str, Any],
    regions: Sequence[Region] = (),
) -> StableHLOOp:
    """Builds the operation from its trailing types; some formats omit inferred ones."""
    types: list[Attribute] = []
    results: list[Attribute] | None = None
    short = cls.short_name
    if parser.parse_optional_punctuation(":") is not None:
        first = parser.parse_type()
        if isinstance(first, FunctionType):
            types, results = list(first.inputs.data), list(first.outputs.data)
        else:
            types = [first]
            while parser.parse_optional_punctuation(",") is not None:
                types.append(parser.parse_type())
            if parser.parse_optional_punctuation("->") is not None:
                results = _result_types(parser)
    if results is None:
        types, results = _implied_types(short, types, len(operands))
    if len(types) == 1 and len(operands) > 1:
        types = types * len(operands)
    if len(types) != len(operands):
        parser.raise_error(
            f"'{cls.name}' has {len(operands)} operands, but its type lists {len(types)}"
        )
    resolved = [
        parser.resolve_operand(operand, type_)
        for operand, type_ in zip(operands, types, strict=True)
    ]
    return _made(cls, resolved, results, attributes, given, regions)


def _result_types(parser: Parser) -> list[Attribute]:
    if parser.parse_optional_punctuation("(") is None:
        return [parser.parse_type()]
    types: list[Attribute] = []
    if parser.parse_optional_punctuation(")") is None:
        types.append(parser.parse_type())
        while parser.parse_optional_punctuation(",") is not None:
            types.append(parser.parse_type())
        parser.parse_punctuation(")")
    return types


def _implied_types(
    short: str, types: list[Attribute], operands: int
) -> tuple[list[Attribute], list[Attribute]]:
    """Infers the operand and result types of an operation that lists only some."""
    if short == "return":
        return types, []
    if short == "select" and len(types) == 2:
        return [types[0], types[1], types[1]], [types[1]]
    if short == "optimization_barrier":
        return types, list(types)
    if short == "tuple" and len(types) == 1 and isinstance(tuple_type := types[0], TupleType):
        return list(tuple_type.types.data), types
    if not operands:
        return [], types
    if short == "complex" and (part := _part_type(types[0])) is not None:
        return [part] * operands, types
    return types, types[-1:]


def _part_type(type_: Attribute) -> Attribute | None:
    """Type of the real part of a complex tensor, None for other types."""
    if not str(type_).startswith("tensor<"):
        return None
    element = element_of(type_)
    part = part_element(element)
    return None if part is element else tensor_type(part, shape_of(type_))


def _constant(cls: type[StableHLOOp], parser: Parser) -> StableHLOOp:
    """`{attributes} dense<...> : type`, or `() <{value = dense<...>}> : () -> type`."""
    attributes: dict[str, Attribute] = {}
    if parser.parse_optional_punctuation("(") is not None:
        parser.parse_punctuation(")")
        attributes |= parser.parse_optional_properties_dict()
    attributes |= parser.parse_optional_attr_dict()
    value = attributes.get("value")
    if value is None:
        value = attributes["value"] = parser.parse_attribute()
        attributes |= parser.parse_optional_attr_dict()
    if parser.parse_optional_punctuation(":") is not None:
        type_ = parser.parse_type()
        result = type_.outputs.data[0] if isinstance(type_, FunctionType) else type_
    else:
        result = getattr(value, "type", None)
        if result is None:
            parser.raise_error("expected the type of the constant")
    return _made(cls, [], [result], attributes)


def _convolution(cls: type[StableHLOOp], parser: Parser) -> StableHLOOp:
    """`(%a, %b) dim_numbers = [..]x[..]->[..], window = {...} {attributes} : types`."""
    operands = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, parser.parse_unresolved_operand
    )
    given: dict[str, Any] = {}
    while (name := parser.parse_optional_identifier()) is not None:
        parser.parse_punctuation("=")
        if name == "dim_numbers":
            lhs, rhs = _value(parser)
            parser.parse_punctuation("->")
            named = {"input": lhs, "kernel": rhs, "output": _value(parser)}
            given["dimension_numbers"] = {
                key: [str(each) for each in value] for key, value in named.items()
            }
        elif name == "window":
            parser.parse_punctuation("{")
            while (key := parser.parse_optional_identifier()) is not None:
                parser.parse_punctuation("=")
                given[_WINDOW[key]] = _value(parser)
                parser.parse_optional_punctuation(",")
            parser.parse_punctuation("}")
        else:
            given[name] = _value(parser)
        if parser.parse_optional_punctuation(",") is None:
            break
    attributes = parser.parse_optional_attr_dict()
    return _parse_types(cls, parser, operands, attributes, given)


_WINDOW = {
    "stride": "window_strides",
    "pad": "padding",
    "lhs_dilate": "lhs_dilation",
    "rhs_dilate": "rhs_dilation",
    "reverse": "window_reversal",
}


def _reduce(cls: type[StableHLOOp], parser: Parser) -> StableHLOOp:
    """`(%x init: %c), (%y init: %d) across dimensions = [1] {attributes} : types` and the body.

    Or `applies operation` before `across`.
    """
    if parser.parse_optional_punctuation("(") is None:
        return parse_items(cls, parser)
    operands: list[UnresolvedOperand] = []
    initial: list[UnresolvedOperand] = []
    while True:
        operands.append(parser.parse_unresolved_operand())
        parser.parse_characters("init")
        parser.parse_punctuation(":")
        initial.append(parser.parse_unresolved_operand())
        parser.parse_punctuation(")")
        if parser.parse_optional_punctuation(",") is None:
            break
        parser.parse_punctuation("(")
    applied = None
    if parser.parse_optional_keyword("applies") is not None:
        applied = parser.parse_identifier()
    parser.parse_keyword("across")
    parser.parse_keyword("dimensions")
    parser.parse_punctuation("=")
    given: dict[str, Any] = {"dimensions": _value(parser)}
    attributes = parser.parse_optional_attr_dict()
    op = _parse_types(cls, parser, [*operands, *initial], attributes, given)
    parser.parse_optional_location()
    if applied is not None:
        op.add_region(_applied(parser, applied, op.operands[len(operands)].type))
    else:
        parser.parse_keyword("reducer")
        op.add_region(_reducer(parser, len(operands)))
    return op


def _applied(parser: Parser, name: str, type_: Attribute) -> Region:
    """Builds the body that `applies operation` abbreviates."""
    cls = _known_class(parser, name)
    if cls is None:
        parser.raise_error(f"unknown operation '{name}'")
    block = Block(arg_types=[type_, type_])
    applied = _made(cls, list(block.args), [type_])
    returning = _known_class(parser, "stablehlo.return")
    assert returning is not None
    block.add_ops([applied, _made(returning, list(applied.results), [])])
    return Region(block)


def _known_class(parser: Parser, name: str) -> type[StableHLOOp] | None:
    """Returns the operation class of a full name, None if there is none."""
    found = parser.ctx.get_optional_op(name)
    return found if found is not None and issubclass(found, StableHLOOp) else None


def _reducer(parser: Parser, count: int) -> Region:
    """`(%a: T, %b: T) (%c: S, %d: S) { ... }`: accumulator and element of each operand.

    The block lists all accumulators first.
    """
    pairs = [
        parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _argument(parser))
        for _ in range(count)
    ]
    if any(len(pair) != 2 for pair in pairs):
        parser.raise_error("the body of a reduction has two arguments for each operand")
    arguments = [pair[0] for pair in pairs] + [pair[1] for pair in pairs]
    return parser.parse_region(arguments)


def _argument(parser: Parser) -> Parser.Argument:
    """`%a: type loc(...)`."""
    argument = parser.parse_argument()
    parser.parse_optional_location()
    return argument


def _while(cls: type[StableHLOOp], parser: Parser) -> StableHLOOp:
    """`(%a = %init, ...) : types attributes {...} cond {...} do {...}`."""
    names: list[UnresolvedOperand] = []
    operands: list[UnresolvedOperand] = []
    parser.parse_punctuation("(")
    if parser.parse_optional_punctuation(")") is None:
        while True:
            names.append(parser.parse_unresolved_operand())
            parser.parse_punctuation("=")
            operands.append(parser.parse_unresolved_operand())
            if parser.parse_optional_punctuation(",") is None:
                break
        parser.parse_punctuation(")")
    types: list[Attribute] = []
    if operands:
        parser.parse_punctuation(":")
        types.append(parser.parse_type())
        while parser.parse_optional_punctuation(",") is not None:
            types.append(parser.parse_type())
    if len(types) != len(operands):
        parser.raise_error(f"the loop has {len(operands)} values, but {len(types)} types")
    attributes = parser.parse_optional_attr_dict_with_keyword()
    resolved = [
        parser.resolve_operand(operand, type_)
        for operand, type_ in zip(operands, types, strict=True)
    ]

    def region(keyword: str) -> Region:
        parser.parse_keyword(keyword)
        arguments = [
            parser.Argument(name.span, type_) for name, type_ in zip(names, types, strict=True)
        ]
        # Both regions share the argument names, which are local to them.
        known = dict(parser.ssa_values)
        parsed = parser.parse_region(arguments)
        parser.ssa_values = known
        return parsed

    regions = [region("cond"), region("do")]
    dictionary = {} if attributes is None else dict(attributes.data)
    return _made(cls, resolved, types, dictionary, regions=regions)


def _scan(cls: type[StableHLOOp], parser: Parser) -> StableHLOOp:
    """`(%a, ...) inits (%b, ...) dimension=0 attributes {...} {body} : types`."""

    def operands() -> list[UnresolvedOperand]:
        return parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )

    inputs = operands()
    parser.parse_keyword("inits")
    inits = operands()
    parser.parse_keyword("dimension")
    parser.parse_punctuation("=")
    dimension = parser.parse_integer()
    attributes = parser.parse_optional_attr_dict_with_keyword()
    body = parser.parse_region()
    parser.parse_punctuation(":")
    types = parser.parse_function_type()
    resolved = parser.resolve_operands([*inputs, *inits], list(types.inputs), parser.pos)
    dictionary = {} if attributes is None else dict(attributes.data)
    given = {"dimension": dimension, "operandSegmentSizes": [len(inputs), len(inits)]}
    return _made(cls, resolved, list(types.outputs), dictionary, given, [body])


def _reduce_precision(cls: type[StableHLOOp], parser: Parser) -> StableHLOOp:
    """`%x, format = e5m10 : type`."""
    op = parse_items(cls, parser)
    exponent, _, mantissa = str(op.get("format", "")).removeprefix("e").partition("m")
    if exponent:
        op.given["exponent_bits"] = int(exponent)
        op.given["mantissa_bits"] = int(mantissa)
    return op


def _dot_general(cls: type[StableHLOOp], parser: Parser) -> StableHLOOp:
    """Item format, with dimensions collected into `dot_dimension_numbers`."""
    op = parse_items(cls, parser)
    batch = op.given.pop("batching_dims", ([], []))
    contracting = op.given.pop("contracting_dims", None)
    if contracting is not None:
        op.given["dot_dimension_numbers"] = {
            "lhs_batching_dimensions": batch[0],
            "rhs_batching_dimensions": batch[1],
            "lhs_contracting_dimensions": contracting[0],
            "rhs_contracting_dimensions": contracting[1],
        }
    return op


def _mesh(cls: type[StableHLOOp], parser: Parser) -> StableHLOOp:
    """`@name = <["x"=2, "y"=4]>`."""
    parser.parse_symbol_name()
    parser.parse_punctuation("=")
    parser.parse_punctuation("<")
    given: dict[str, Any] = {"axes": {}}
    if parser.parse_optional_punctuation("[") is not None:
        while parser.parse_optional_punctuation("]") is None:
            axis = parser.parse_str_literal()
            parser.parse_punctuation("=")
            given["axes"][axis] = parser.parse_integer()
            parser.parse_optional_punctuation(",")
    parser.parse_optional_punctuation(",")
    while parser.parse_optional_punctuation(">") is None:
        if (name := parser.parse_optional_identifier()) is not None:
            parser.parse_punctuation("=")
            given[name] = _value(parser)
        elif parser.parse_optional_punctuation(",") is None:
            parser.raise_error("expected '>' at the end of a mesh")
    return _made(cls, [], [], parser.parse_optional_attr_dict(), given)


def _manual_computation(cls: type[StableHLOOp], parser: Parser) -> StableHLOOp:
    """`(%a) in_shardings=[...] out_shardings=[...] manual_axes={...} (%b: T) {...} : types`."""
    operands = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, parser.parse_unresolved_operand
    )
    given: dict[str, Any] = {}
    for _ in range(3):
        name = parser.parse_identifier()
        parser.parse_punctuation("=")
        given[name] = _skip_balanced(parser)
    arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _argument(parser))
    region = parser.parse_region(arguments)
    return _parse_types(cls, parser, operands, parser.parse_optional_attr_dict(), given, [region])


def _named_computation(cls: type[StableHLOOp], parser: Parser) -> StableHLOOp:
    """`<"name">(%a) in_shardings=... (%b: T) {...} : types`."""
    _skip_balanced(parser)
    operands = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, parser.parse_unresolved_operand
    )
    while parser.parse_optional_identifier() is not None:
        parser.parse_punctuation("=")
        _skip_balanced(parser)
    arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _argument(parser))
    region = parser.parse_region(arguments)
    return _parse_types(cls, parser, operands, parser.parse_optional_attr_dict(), {}, [region])


def _sharded_value(cls: type[StableHLOOp], parser: Parser) -> StableHLOOp:
    """`[..] %a [..] name=<...> {attributes} : types`: a value and its sharding.

    Reduction axes precede the value in braces.
    """
    operands: list[UnresolvedOperand] = []
    given: dict[str, Any] = {}
    while True:
        if (operand := parser.parse_optional_unresolved_operand()) is not None:
            operands.append(operand)
            parser.parse_optional_punctuation(",")
        elif parser.parse_optional_identifier() is not None:
            if parser.parse_optional_punctuation("=") is not None:
                _skip_balanced(parser)
        elif _opens(parser, "<"):
            given["sharding"] = _skip_balanced(parser)
        elif _opens(parser, "["):
            _skip_balanced(parser)
        elif not operands and _opens(parser, "{"):
            # The axes of `sdy.all_reduce {"x"} %a`; after the value, attributes come in braces.
            _skip_balanced(parser)
        else:
            break
    return _parse_types(cls, parser, operands, parser.parse_optional_attr_dict(), given)


def _opens(parser: Parser, bracket: str) -> bool:
    return parser._current_token.text == bracket  # pyright: ignore[reportPrivateUsage]


def _skip_balanced(parser: Parser) -> str:
    """Skips one bracketed group or token; returns its tokens."""
    depth = 0
    passed: list[str] = []
    while True:
        text = parser._consume_token().text  # pyright: ignore[reportPrivateUsage]
        passed.append(text)
        if text in ("<", "[", "{", "("):
            depth += 1
        elif text in (">", "]", "}", ")"):
            depth -= 1
        if depth <= 0:
            return " ".join(passed)
        if not text:
            parser.raise_error("a bracket is not closed")


_FORMS: dict[str, Form] = {
    "constant": _constant,
    "convolution": _convolution,
    "reduce": _reduce,
    "while": _while,
    "reduce_precision": _reduce_precision,
    "scan": _scan,
    "dot_general": _dot_general,
}
_SDY_FORMS: dict[str, Form] = {
    "mesh": _mesh,
    "manual_computation": _manual_computation,
    "named_computation": _named_computation,
    "sharding_constraint": _sharded_value,
    "reshard": _sharded_value,
    "constant": _constant,
    "all_gather": _sharded_value,
    "all_reduce": _sharded_value,
    "all_slice": _sharded_value,
    "all_to_all": _sharded_value,
    "collective_permute": _sharded_value,
    "reduce_scatter": _sharded_value,
    "propagation_barrier": _sharded_value,
    "sharding_group": _sharded_value,
}
