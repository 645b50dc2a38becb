"""Ops that compute each element on its own."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
)
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.datatypes import (
    element_of,
    f32,
    i1,
    is_boolean,
    shape_of,
    tensor_type,
)
from ttcodegen.frontends.stablehlo import complex_numbers
from ttcodegen.frontends.stablehlo.conversion import (
    Complex,
    Conversion,
    Results,
    Rule,
    Value,
)
from ttcodegen.frontends.stablehlo.dialect import StableHLOOp, is_unsigned

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
        if name == "div" and not isinstance(element_of(operands[0].type), AnyFloat):
            return _integer_quotient(conversion, op, operands)
        on_booleans = boolean is not None and is_boolean(element_of(operands[0].type))
        made = boolean if on_booleans and boolean is not None else name
        return conversion.builder.emit(made, operands, _result(op, operands))

    return rule


def _integer_quotient(
    conversion: Conversion, op: StableHLOOp, operands: list[SSAValue]
) -> SSAValue:
    """What is before the point of the quotient."""
    number = conversion.number(operands[1])
    if number == 1:
        return operands[0]
    return conversion.builder.emit("div", operands, _result(op, operands))


def _compare(conversion: Conversion, op: StableHLOOp) -> Value:
    name = _COMPARISONS[str(op["comparison_direction"]).rpartition("_")[2].upper()]
    left, right = conversion.values(op)
    if isinstance(left, Complex) and isinstance(right, Complex):
        return complex_numbers.compare(conversion, name, left, right)
    operands = conversion.tensors(op)
    return conversion.builder.emit(name, operands, tensor_type(i1, shape_of(operands[0].type)))


def _not(conversion: Conversion, op: StableHLOOp) -> Value:
    operand = conversion.tensor(op.operands[0])
    name = "logical_not" if is_boolean(element_of(operand.type)) else "bitwise_not"
    return conversion.builder.emit(name, [operand], _result(op, [operand]))


def _remainder(conversion: Conversion, op: StableHLOOp) -> Value:
    """The remainder has the sign of the dividend; that of TTIR has the sign of the divisor."""
    builder = conversion.builder
    left, right = conversion.tensors(op)
    element = element_of(left.type)
    type_ = _result(op, [left])
    unsigned = is_unsigned(element)
    if unsigned:
        return builder.emit("remainder", [left, right], type_)
    size = builder.emit(
        "remainder",
        [builder.emit("abs", [left], type_), builder.emit("abs", [right], type_)],
        type_,
    )
    return builder.emit("multiply", [builder.emit("sign", [left], type_), size], type_)


def _select(conversion: Conversion, op: StableHLOOp) -> Value:
    condition, first, second = conversion.values(op)
    if isinstance(first, Complex) and isinstance(second, Complex):
        return Complex(
            _where(conversion, condition, first.real, second.real),
            _where(conversion, condition, first.imag, second.imag),
        )
    return _where(conversion, condition, *conversion.tensors(op)[1:])


def _where(conversion: Conversion, condition: Value, first: SSAValue, second: SSAValue) -> SSAValue:
    assert isinstance(condition, SSAValue)
    shape = shape_of(first.type)
    if len(shape_of(condition.type)) != len(shape):
        condition = conversion.broadcast_to(
            conversion.builder.reshape(condition, [1] * len(shape)), shape
        )
    return conversion.builder.emit("where", [condition, first, second], first.type)


def _clamp(conversion: Conversion, op: StableHLOOp) -> Value:
    builder = conversion.builder
    low, value, high = conversion.tensors(op)
    numbers = conversion.number(low), conversion.number(high)
    if numbers[0] is not None and numbers[1] is not None:
        return builder.emit("clamp_scalar", [value], value.type, min=numbers[0], max=numbers[1])
    shape = shape_of(value.type)
    low, high = (
        conversion.broadcast_to(builder.reshape(limit, [1] * len(shape)), shape)
        if len(shape_of(limit.type)) != len(shape)
        else limit
        for limit in (low, high)
    )
    return builder.emit("clamp_tensor", [value, low, high], value.type)


def _convert(conversion: Conversion, op: StableHLOOp) -> Value:
    value = conversion.value(op.operands[0])
    target = element_of(op.results[0].type)
    if isinstance(value, Complex) or complex_numbers.is_complex_element(target):
        return complex_numbers.convert(conversion, value, target)
    return conversion.builder.typecast(conversion.tensor(op.operands[0]), target)


# What is made of several ops


def _round(to_even: bool) -> Rule:
    """To the nearest integer; what lies between two goes away from zero, or to the even one."""

    def rule(conversion: Conversion, op: StableHLOOp) -> Value:
        builder = conversion.builder
        (x,) = conversion.tensors(op)
        half = conversion.filled_like(0.5, x)
        size = builder.like("abs", x)
        up = builder.like("floor", builder.like("add", size, half))
        if to_even:
            # Between two integers, `up` is one too many where it is odd.
            two = conversion.filled_like(2.0, x)
            between = builder.like("eq", builder.like("subtract", up, size), half, element=i1)
            zero = conversion.filled_like(0, x)
            odd = builder.like("ne", builder.like("remainder", up, two), zero, element=i1)
            both = builder.like("logical_and", between, odd)
            up = builder.like("subtract", up, builder.typecast(both, element_of(x.type)))
        return builder.like("multiply", builder.like("sign", x), up)

    return rule


def _exponentials(plus: bool) -> Rule:
    """`(exp(x) + exp(-x)) / 2`, or with a minus."""

    def rule(conversion: Conversion, op: StableHLOOp) -> Value:
        builder = conversion.builder
        (x,) = conversion.tensors(op)
        both = [builder.like("exp", x), builder.like("exp", builder.like("neg", x))]
        total = builder.like("add" if plus else "subtract", *both)
        return builder.like("multiply", total, conversion.filled_like(0.5, x))

    return rule


def _acosh(conversion: Conversion, op: StableHLOOp) -> Value:
    """`log(x + sqrt((x + 1) * (x - 1)))`."""
    builder = conversion.builder
    (x,) = conversion.tensors(op)
    one = conversion.filled_like(1, x)
    root = builder.like("multiply", builder.like("add", x, one), builder.like("subtract", x, one))
    return builder.like("log", builder.like("add", x, builder.like("sqrt", root)))


def _atanh(conversion: Conversion, op: StableHLOOp) -> Value:
    """`(log1p(x) - log1p(-x)) / 2`."""
    builder = conversion.builder
    (x,) = conversion.tensors(op)
    minus = builder.like("log1p", builder.like("neg", x))
    both = builder.like("subtract", builder.like("log1p", x), minus)
    return builder.like("multiply", both, conversion.filled_like(0.5, x))


_ERF_INV_CENTRAL = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06,
                    0.00021858087, -0.00125372503, -0.00417768164, 0.246640727,
                    1.50140941)  # fmt: skip
_ERF_INV_TAIL = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                 -0.0076224613, 0.00943887047, 1.00167406, 2.83297682)  # fmt: skip


def _erf_inv(conversion: Conversion, op: StableHLOOp) -> Value:
    """Two polynomials in `-log(1 - x^2)` (M. Giles, Approximating the erfinv function, 2012)."""
    builder = conversion.builder
    (x,) = conversion.tensors(op)
    result = element_of(x.type)
    x = builder.typecast(x, f32)
    square = builder.like("neg", builder.like("multiply", x, x))
    w = builder.like("neg", builder.like("log1p", square))
    central = builder.like("subtract", w, conversion.filled_like(2.5, w))
    tail = builder.like("subtract", builder.like("sqrt", w), conversion.filled_like(3.0, w))
    small = builder.like("lt", w, conversion.filled_like(5.0, w), element=i1)
    polynomials = [
        _polynomial(conversion, coefficients, at)
        for coefficients, at in ((_ERF_INV_CENTRAL, central), (_ERF_INV_TAIL, tail))
    ]
    factor = builder.emit("where", [small, *polynomials], x.type)
    return builder.typecast(builder.like("multiply", factor, x), result)


def _polynomial(conversion: Conversion, coefficients: Sequence[float], x: SSAValue) -> SSAValue:
    total = conversion.filled_like(coefficients[0], x)
    for coefficient in coefficients[1:]:
        product = conversion.builder.like("multiply", total, x)
        total = conversion.builder.like("add", product, conversion.filled_like(coefficient, x))
    return total


_LANCZOS = (0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
            -176.61502916214059, 12.507343278686905, -0.13857109526572012,
            9.9843695780195716e-6, 1.5056327351493116e-7)  # fmt: skip


def _lgamma(conversion: Conversion, op: StableHLOOp) -> Value:
    """Lanczos' sum with 7 and 9 terms; below a half by reflection."""
    builder = conversion.builder
    (x,) = conversion.tensors(op)
    result = element_of(x.type)
    x = builder.typecast(x, f32)
    half, one = conversion.filled_like(0.5, x), conversion.filled_like(1.0, x)
    reflected = builder.like("lt", x, half, element=i1)
    z = builder.emit(
        "where", [reflected, builder.like("neg", x), builder.like("subtract", x, one)], x.type
    )
    total = conversion.filled_like(_LANCZOS[0], x)
    for index, coefficient in enumerate(_LANCZOS[1:], start=1):
        place = builder.like("add", z, conversion.filled_like(index, x))
        term = builder.like("div", conversion.filled_like(coefficient, x), place)
        total = builder.like("add", total, term)
    t = builder.like("add", z, conversion.filled_like(7.5, x))
    log_t = builder.like("log", t)
    power = builder.like("multiply", builder.like("add", z, half), log_t)
    found = builder.like("subtract", builder.like("log", total), t)
    found = builder.like("add", builder.like("add", found, power), conversion.filled_like(
        0.5 * 1.8378770664093453, x))  # fmt: skip
    angle = builder.like("multiply", builder.like("abs", x), conversion.filled_like(pi, x))
    sine = builder.like("log", builder.like("abs", builder.like("sin", angle)))
    other = builder.like("subtract", conversion.filled_like(1.1447298858494002, x), sine)
    other = builder.like("subtract", other, found)
    return builder.typecast(builder.emit("where", [reflected, other, found], x.type), result)


def _infinite(sign: int) -> Rule:
    """Whether a number is infinite: of any sign (0), or of that sign."""

    def rule(conversion: Conversion, op: StableHLOOp) -> Value:
        builder = conversion.builder
        (x,) = conversion.tensors(op)
        size = builder.like("abs", x) if sign == 0 else x
        limit = conversion.filled_like(float("-inf") if sign < 0 else float("inf"), x)
        return builder.like("eq", size, limit, element=i1)

    return rule


def _reduce_precision(conversion: Conversion, op: StableHLOOp) -> Value:
    """Rounds to a type that the device has, and back."""
    (x,) = conversion.tensors(op)
    bits = int(op["exponent_bits"]), int(op["mantissa_bits"])
    formats: dict[tuple[int, int], Attribute] = {
        (8, 7): BFloat16Type(),
        (8, 23): Float32Type(),
        (5, 10): Float16Type(),
    }
    if bits not in formats:
        raise ValueError(f"rounding to {bits[0]} bits of exponent and {bits[1]} of mantissa is not "
                         "supported; bf16, f16 and f32 are")  # fmt: skip
    narrow = conversion.builder.typecast(x, formats[bits])
    return conversion.builder.typecast(narrow, element_of(x.type))


def _identity(conversion: Conversion, op: StableHLOOp) -> Results:
    values = conversion.values(op)
    return values if len(op.results) != 1 else values[0]


RULES: dict[str, Rule] = {
    **{name: _unary(made) for name, made in _UNARY.items()},
    **{name: _binary(*made) for name, made in _BINARY.items()},
    "acosh": _acosh,
    "atanh": _atanh,
    "clamp": _clamp,
    "compare": _compare,
    "convert": _convert,
    "copy": _identity,
    "cosh": _exponentials(True),
    "domain": _identity,
    "erf_inv": _erf_inv,
    "is_inf": _infinite(0),
    "is_neg_inf": _infinite(-1),
    "is_pos_inf": _infinite(1),
    "lgamma": _lgamma,
    "not": _not,
    "optimization_barrier": _identity,
    "reduce_precision": _reduce_precision,
    "remainder": _remainder,
    "round_nearest_afz": _round(False),
    "round_nearest_even": _round(True),
    "select": _select,
    "sinh": _exponentials(False),
}
