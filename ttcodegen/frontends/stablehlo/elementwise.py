"""Ops that compute each element on its own."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    AnyFloat,
)
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import (
    element_of,
    i1,
    is_boolean,
    shape_of,
    tensor_type,
)
from ttcodegen.frontends.special_functions import (
    SPECIAL_FUNCTIONS,
    float_rest,
    rest_of,
    rounded,
    truncated,
)
from ttcodegen.frontends.stablehlo import complex_numbers
from ttcodegen.frontends.stablehlo.conversion import (
    Complex,
    Conversion,
    Results,
    Rule,
    Value,
)
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp, is_unsigned

_UNARY = {
    "abs": "abs",
    "acos": "acos",
    "asin": "asin",
    "asinh": "asinh",
    "atan": "atan",
    "cbrt": "cbrt",
    "ceil": "ceil",
    "cosine": "cos",
    "erf": "erf",
    "erfc": "erfc",
    "exponential": "exp",
    "exponential_minus_one": "expm1",
    "floor": "floor",
    "is_finite": "isfinite",
    "is_inf": "isinf",
    "log": "log",
    "log_plus_one": "log1p",
    "logistic": "sigmoid",
    "negate": "neg",
    "rsqrt": "rsqrt",
    "sign": "sign",
    "sine": "sin",
    "sqrt": "sqrt",
    "square": "square",
    "tan": "tan",
    "tanh": "tanh",
}
_BINARY = {
    "add": ("add", "logical_or"),
    "and": ("bitwise_and", "logical_and"),
    "atan2": ("atan2", None),
    "divide": ("div", None),
    "maximum": ("maximum", "logical_or"),
    "minimum": ("minimum", "logical_and"),
    "multiply": ("multiply", "logical_and"),
    "or": ("bitwise_or", "logical_or"),
    "power": ("pow", None),
    "shift_left": ("logical_left_shift", None),
    "shift_right_arithmetic": ("right_shift", None),
    "shift_right_logical": ("logical_right_shift", None),
    "subtract": ("subtract", None),
    "xor": ("bitwise_xor", "logical_xor"),
}
"""By operation: the op on numbers, and that on booleans."""
_COMPARISONS = {"EQ": "eq", "NE": "ne", "GE": "ge", "GT": "gt", "LE": "le", "LT": "lt"}


def _result(op: StableHLOOp, operands: Sequence[SSAValue]) -> Attribute:
    """The type of the result: that of the operands, with the element type that is declared."""
    return tensor_type(element_of(op.results[0].type), shape_of(operands[0].type))


def _require_one_type(
    conversion: Conversion, op: StableHLOOp, operands: Sequence[SSAValue]
) -> None:
    """Refuses what the ops of TTIR would broadcast or convert: here, operands are of one type.

    Raises:
        ValueError: if they are not; in bodies that compute whole tensors, shapes may differ.
    """
    types = [tensor_type(element_of(each.type), shape_of(each.type)) for each in operands]
    if not conversion.is_lifted and any([each != types[0] for each in types]):
        listed = " and ".join(map(str, types))
        raise ValueError(f"'{op.name}' takes operands of one type, found {listed}")


def _unary(name: str) -> Rule:
    def rule(conversion: Conversion, op: StableHLOOp) -> Value:
        value = conversion.value(op.operands[0])
        if isinstance(value, Complex):
            return complex_numbers.unary(conversion, name, value)
        operand = conversion.tensor(op.operands[0])
        return conversion.builder.emit(name, [operand], _result(op, [operand]))

    return rule


def _binary(name: str, boolean: str | None) -> Rule:
    def rule(conversion: Conversion, op: StableHLOOp) -> Value:
        left, right = conversion.values(op)
        if isinstance(left, Complex) or isinstance(right, Complex):
            return complex_numbers.binary(conversion, name, left, right)
        operands = conversion.tensors(op)
        _require_one_type(conversion, op, operands)
        if name == "div" and not isinstance(element_of(operands[0].type), AnyFloat):
            return _integer_quotient(conversion, op, operands)
        on_booleans = boolean is not None and is_boolean(element_of(operands[0].type))
        made = boolean if on_booleans and boolean is not None else name
        return conversion.builder.emit(made, operands, _result(op, operands))

    return rule


def _integer_quotient(
    conversion: Conversion, op: StableHLOOp, operands: list[SSAValue]
) -> SSAValue:
    """Truncating integer quotient."""
    number = conversion.number(operands[1])
    if number == 1:
        return operands[0]
    return conversion.builder.emit("div", operands, _result(op, operands))


def _compare(conversion: Conversion, op: StableHLOOp) -> Value:
    name = _COMPARISONS[op.direction]
    left, right = conversion.values(op)
    if isinstance(left, Complex) and isinstance(right, Complex):
        return complex_numbers.compare(conversion, name, left, right)
    operands = conversion.tensors(op)
    _require_one_type(conversion, op, operands)
    return conversion.builder.emit(name, operands, tensor_type(i1, shape_of(operands[0].type)))


def _not(conversion: Conversion, op: StableHLOOp) -> Value:
    operand = conversion.tensor(op.operands[0])
    name = "logical_not" if is_boolean(element_of(operand.type)) else "bitwise_not"
    return conversion.builder.emit(name, [operand], _result(op, [operand]))


def _remainder(conversion: Conversion, op: StableHLOOp) -> Value:
    """The remainder has the sign of the dividend; that of TTIR has the sign of the divisor."""
    builder = conversion.builder
    left, right = conversion.tensors(op)
    _require_one_type(conversion, op, [left, right])
    element = element_of(left.type)
    if is_unsigned(element):
        return builder.emit("remainder", [left, right], _result(op, [left]))
    if not isinstance(element, AnyFloat):
        # The lowest number has no absolute value.
        return rest_of(builder, left, right, truncated(builder, left, right))
    return float_rest(builder, left, right)


def _select(conversion: Conversion, op: StableHLOOp) -> Value:
    condition, first, second = conversion.values(op)
    if isinstance(first, Complex) and isinstance(second, Complex):
        return Complex(
            _where(conversion, condition, first.real, second.real),
            _where(conversion, condition, first.imag, second.imag),
        )
    _, *choices = conversion.tensors(op)
    _require_one_type(conversion, op, choices)
    return _where(conversion, condition, *choices)


def _where(conversion: Conversion, condition: Value, first: SSAValue, second: SSAValue) -> SSAValue:
    assert isinstance(condition, SSAValue)
    condition = _broadcast_to(conversion, condition, shape_of(first.type))
    return conversion.builder.emit("where", [condition, first, second], first.type)


def _broadcast_to(conversion: Conversion, value: SSAValue, shape: Sequence[int]) -> SSAValue:
    """A scalar as a tensor of that shape; what is no scalar as it is."""
    found = shape_of(value.type)
    if len(found) == len(shape):
        return value
    if found:
        raise ValueError(f"expected a scalar or the shape {list(shape)}, found {list(found)}")
    return conversion.broadcast_to(conversion.builder.reshape(value, [1] * len(shape)), shape)


def _clamp(conversion: Conversion, op: StableHLOOp) -> Value:
    builder = conversion.builder
    low, value, high = conversion.tensors(op)
    numbers = conversion.number(low), conversion.number(high)
    if numbers[0] is not None and numbers[1] is not None:
        return builder.emit("clamp_scalar", [value], value.type, min=numbers[0], max=numbers[1])
    shape = shape_of(value.type)
    low, high = (_broadcast_to(conversion, limit, shape) for limit in (low, high))
    return builder.emit("clamp_tensor", [value, low, high], value.type)


def _convert(conversion: Conversion, op: StableHLOOp) -> Value:
    value = conversion.value(op.operands[0])
    target = element_of(op.results[0].type)
    if isinstance(value, Complex) or complex_numbers.is_complex_element(target):
        return complex_numbers.convert(conversion, value, target)
    tensor = conversion.tensor(op.operands[0])
    return conversion.builder.typecast(tensor, target)


# What is made of several ops


def _round(to_even: bool) -> Rule:
    """To the nearest integer; what is halfway between two goes away from zero, or to the even
    one."""

    def rule(conversion: Conversion, op: StableHLOOp) -> Value:
        return rounded(conversion.builder, conversion.tensor(op.operands[0]), to_even)

    return rule


def _special(name: str) -> Rule:
    def rule(conversion: Conversion, op: StableHLOOp) -> Value:
        (x,) = conversion.tensors(op)
        return SPECIAL_FUNCTIONS[name](conversion.builder, x)

    return rule


def _infinite(sign: int) -> Rule:
    """True if a number is infinite and of that sign."""

    def rule(conversion: Conversion, op: StableHLOOp) -> Value:
        builder = conversion.builder
        (x,) = conversion.tensors(op)
        limit = conversion.filled_like(float("-inf") if sign < 0 else float("inf"), x)
        return builder.like("eq", x, limit, element=i1)

    return rule


def _identity(conversion: Conversion, op: StableHLOOp) -> Results:
    values = conversion.values(op)
    return values if len(op.results) != 1 else values[0]


RULES: dict[str, Rule] = {
    **{name: _special(name) for name in SPECIAL_FUNCTIONS},
    **{name: _unary(made) for name, made in _UNARY.items()},
    **{name: _binary(*made) for name, made in _BINARY.items()},
    "clamp": _clamp,
    "compare": _compare,
    "convert": _convert,
    "copy": _identity,
    "domain": _identity,
    "erf_inv": _special("erfinv"),
    "is_neg_inf": _infinite(-1),
    "is_pos_inf": _infinite(1),
    "not": _not,
    "optimization_barrier": _identity,
    "remainder": _remainder,
    "round_nearest_afz": _round(False),
    "round_nearest_even": _round(True),
    "select": _select,
}
