"""Elementwise ops of StableHLO; those of complex numbers are in `complex_numbers`."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import cast

from xdsl.dialects.builtin import (
    AnyFloat,
    Float16Type,
    IntegerType,
    i32,
)
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import (
    element_of,
    i1,
    is_boolean,
    shape_of,
    tensor_type,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.frontends.expressions import Expression
from ttcodegen.frontends.special_functions import (
    SPECIAL_FUNCTIONS,
    float_rest,
    rest_of,
    rounded,
    sign_of_float,
    total_order,
    truncated,
)
from ttcodegen.frontends.stablehlo.complex_numbers import (
    binary,
    compare,
    convert,
    is_complex_element,
    unary,
)
from ttcodegen.frontends.stablehlo.conversion import (
    Complex,
    Conversion,
    Results,
    Rule,
    Value,
)
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp, is_unsigned
from ttcodegen.frontends.zeta import polygamma, polygamma_of_orders, zeta
from ttcodegen.ops.core.builder import splat_of

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
    "shift_right_logical": ("logical_right_shift", None),
    "subtract": ("subtract", None),
    "xor": ("bitwise_xor", "logical_xor"),
}
"""TTIR op of each binary operation: for numbers and for booleans."""
_COMPARISONS = {"EQ": "eq", "NE": "ne", "GE": "ge", "GT": "gt", "LE": "le", "LT": "lt"}


def _result(op: StableHLOOp, operands: Sequence[SSAValue]) -> Attribute:
    """Result type: the operands' shape with the declared element type."""
    return tensor_type(element_of(op.results[0].type), shape_of(operands[0].type))


def _require_one_type(
    conversion: Conversion, op: StableHLOOp, operands: Sequence[SSAValue]
) -> None:
    """Requires operands of one type: TTIR ops would broadcast or convert them.

    Raises:
        ValueError: if types differ; bodies that are applied to whole tensors may mix shapes.
    """
    types = [tensor_type(element_of(each.type), shape_of(each.type)) for each in operands]
    if not conversion.is_lifted and any([each != types[0] for each in types]):
        listed = " and ".join(map(str, types))
        raise ValueError(f"'{op.name}' takes operands of one type, found {listed}")


def _unary(name: str) -> Rule:
    def rule(conversion: Conversion, op: StableHLOOp) -> Value:
        value = conversion.value(op.operands[0])
        if isinstance(value, Complex):
            return unary(conversion, name, value)
        operand = conversion.tensor(op.operands[0])
        return conversion.builder.emit(name, [operand], _result(op, [operand]))

    return rule


def _binary(name: str, boolean: str | None) -> Rule:
    def rule(conversion: Conversion, op: StableHLOOp) -> Value:
        left, right = conversion.values(op)
        if isinstance(left, Complex) or isinstance(right, Complex):
            return binary(conversion, name, left, right)
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
        return compare(conversion, name, left, right)
    operands = conversion.tensors(op)
    _require_one_type(conversion, op, operands)
    is_float = isinstance(element_of(operands[0].type), AnyFloat)
    if is_float and "TOTALORDER" in str(op.get("compare_type")).upper():
        operands = [total_order(conversion.builder, each) for each in operands]
    return conversion.builder.emit(name, operands, tensor_type(i1, shape_of(operands[0].type)))


def _not(conversion: Conversion, op: StableHLOOp) -> Value:
    operand = conversion.tensor(op.operands[0])
    name = "logical_not" if is_boolean(element_of(operand.type)) else "bitwise_not"
    return conversion.builder.emit(name, [operand], _result(op, [operand]))


def _remainder(conversion: Conversion, op: StableHLOOp) -> Value:
    """Remainder with the dividend's sign; TTIR's has the divisor's."""
    builder = conversion.builder
    left, right = conversion.tensors(op)
    _require_one_type(conversion, op, [left, right])
    element = element_of(left.type)
    if is_unsigned(element):
        return builder.emit("remainder", [left, right], _result(op, [left]))
    if not isinstance(element, AnyFloat):
        # No float_rest: the absolute value of the lowest integer overflows.
        return rest_of(builder, left, right, truncated(builder, left, right))
    return float_rest(builder, left, right)


def _shift_right_arithmetic(conversion: Conversion, op: StableHLOOp) -> Value:
    """Arithmetic right shift, of unsigned integers as well."""
    builder = conversion.builder
    operands = conversion.tensors(op)
    _require_one_type(conversion, op, operands)
    element = element_of(operands[0].type)
    if is_unsigned(element):
        signed = IntegerType(cast("IntegerType", element).width.data)
        operands = [builder.typecast(each, signed) for each in operands]
    return builder.typecast(builder.emit("right_shift", operands, operands[0].type), element)


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
    """Broadcasts a scalar to a shape; other values stay unchanged."""
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
    if any(number != number for number in numbers):
        return conversion.filled_like(float("nan"), value)
    if numbers[0] is not None and numbers[1] is not None:
        return builder.emit("clamp_scalar", [value], value.type, min=numbers[0], max=numbers[1])
    shape = shape_of(value.type)
    low, high = (_broadcast_to(conversion, limit, shape) for limit in (low, high))
    return builder.emit("clamp_tensor", [value, low, high], value.type)


def _convert(conversion: Conversion, op: StableHLOOp) -> Value:
    value = conversion.value(op.operands[0])
    target = element_of(op.results[0].type)
    if isinstance(value, Complex) or is_complex_element(target):
        return convert(conversion, value, target)
    tensor = conversion.tensor(op.operands[0])
    found = conversion.builder.typecast(tensor, target)
    if target == i32 and isinstance(element_of(tensor.type), AnyFloat) and not _is_small(tensor):
        return _saturate(conversion, tensor, found)
    return found


def _saturate(conversion: Conversion, value: SSAValue, integers: SSAValue) -> Value:
    """Saturates integers converted from floats at 2^31 - 1, as in XLA.

    The device converts values beyond either end to the lowest integer.
    """
    # Only infinities of f16 exceed the range.
    end = inf if isinstance(element_of(value.type), Float16Type) else 2.0**31
    is_beyond = conversion.builder.like("ge", value, conversion.filled_like(end, value), element=i1)
    highest = conversion.filled_like(2**31 - 1, integers)
    return conversion.builder.emit("where", [is_beyond, highest, integers], integers.type)


_BOUNDED = frozenset(
    f"ttir.{name}" for name in ("sigmoid", "tanh", "erf", "sin", "cos", "hardsigmoid", "arange")
)
_NOT_GREATER = frozenset(
    f"ttir.{name}"
    for name in (
        "floor", "ceil", "round", "trunc", "relu6", "reshape", "permute", "transpose", "broadcast",
        "slice_static", "reverse", "squeeze", "unsqueeze",
    )
)  # fmt: skip
"""Ops whose results are below 2^31 if their operand is."""


def _is_small(value: SSAValue) -> bool:
    """Returns whether elements are known to be below 2^31."""
    while isinstance(op := value.owner, CatalogueOp):
        if op.name == "ttir.clamp_scalar":
            return op.parameter("max") < 2**31
        if op.name == "ttir.typecast":
            element = element_of(op.operands[0].type)
            if isinstance(element, IntegerType):
                return True
        elif op.name in _BOUNDED:
            return True
        elif op.name == "ttir.minimum":
            limits = [splat_of(each) for each in op.operands]
            return any(each is not None and each < 2**31 for each in limits)
        elif op.name not in _NOT_GREATER:
            return False
        value = op.operands[0]
    return False


# What is made of several ops


def _round(to_even: bool) -> Rule:
    """Rounds to the nearest integer, ties to even or away from zero."""

    def rule(conversion: Conversion, op: StableHLOOp) -> Value:
        return rounded(conversion.builder, conversion.tensor(op.operands[0]), to_even)

    return rule


def _special(name: str) -> Rule:
    def rule(conversion: Conversion, op: StableHLOOp) -> Value:
        value = conversion.value(op.operands[0])
        if isinstance(value, Complex):
            return unary(conversion, name, value)
        return SPECIAL_FUNCTIONS[name](conversion.builder, conversion.tensor(op.operands[0]))

    return rule


def _zeta(conversion: Conversion, op: StableHLOOp) -> Value:
    x, q = (Expression.computed(conversion.builder, each) for each in conversion.tensors(op))
    return zeta(x, q).to(element_of(op.results[0].type)).value


def _polygamma(conversion: Conversion, op: StableHLOOp) -> Value:
    """Derivative of the digamma function; of one order, it is reflected below 1/2."""
    order, x = (Expression.computed(conversion.builder, each) for each in conversion.tensors(op))
    number = conversion.number(order.value)
    if number is not None and number >= 0 and number == int(number):
        found = polygamma(int(number), x)
    else:
        found = polygamma_of_orders(order, x)
    return found.to(element_of(op.results[0].type)).value


def _sign(conversion: Conversion, op: StableHLOOp) -> Results:
    if isinstance(element_of(op.operands[0].type), AnyFloat):
        return sign_of_float(conversion.builder, conversion.tensor(op.operands[0]), nan)
    return _unary("sign")(conversion, op)


def _infinite(sign: int) -> Rule:
    """Mask of infinities of the given sign."""

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
    "polygamma": _polygamma,
    "optimization_barrier": _identity,
    "remainder": _remainder,
    "shift_right_arithmetic": _shift_right_arithmetic,
    "round_nearest_afz": _round(False),
    "round_nearest_even": _round(True),
    "select": _select,
    "sign": _sign,
    "zeta": _zeta,
}
