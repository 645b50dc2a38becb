"""Functions without a TTIR op: special functions, integer division, complex pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log, nan, pi

from xdsl.dialects.builtin import f16, i32
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import (
    bf16,
    element_of,
    f32,
    i1,
    numpy_name,
    shape_of,
    ui16,
    ui32,
)
from ttcodegen.ops.core.builder import OpBuilder

# Functions of one tensor that TTIR has no op for, as the ops that compute them.

SpecialFunction = Callable[[OpBuilder, SSAValue], SSAValue]

_ERF_INV_CENTRAL = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06,
                    0.00021858087, -0.00125372503, -0.00417768164, 0.246640727,
                    1.50140941)  # fmt: skip
_ERF_INV_TAIL = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                 -0.0076224613, 0.00943887047, 1.00167406, 2.83297682)  # fmt: skip

_LANCZOS = (0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
            -176.61502916214059, 12.507343278686905, -0.13857109526572012,
            9.9843695780195716e-6, 1.5056327351493116e-7)  # fmt: skip


def _number(build: OpBuilder, value: float, like: SSAValue) -> SSAValue:
    return build.full([1] * len(shape_of(like.type)), value, element_of(like.type))


def _shifted(build: OpBuilder, x: SSAValue, offset: float) -> SSAValue:
    return build.like("add", x, _number(build, offset, x))


def polynomial(build: OpBuilder, coefficients: Sequence[float], x: SSAValue) -> SSAValue:
    """Evaluates a polynomial by Horner's rule; coefficients with the highest power first."""
    total = _shifted(
        build, build.like("multiply", x, _number(build, coefficients[0], x)), coefficients[1]
    )
    for coefficient in coefficients[2:]:
        total = _shifted(build, build.like("multiply", total, x), coefficient)
    return total


def _compared(build: OpBuilder, name: str, x: SSAValue, value: float) -> SSAValue:
    return build.like(name, x, _number(build, value, x), element=i1)


def number_or(build: OpBuilder, value: SSAValue, neutral: float) -> SSAValue:
    """Replaces NaN by `neutral`."""
    is_none = build.like("isnan", value, element=i1)
    number = _number(build, neutral, value)
    return build.broadcasting("where", is_none, number, value, element=element_of(value.type))


def extreme_of_numbers(build: OpBuilder, name: str, a: SSAValue, b: SSAValue) -> SSAValue:
    """Maximum or minimum that ignores NaN in one of the operands."""
    first, second = (
        build.broadcasting(
            "where",
            build.like("isnan", value, element=i1),
            other,
            value,
            element=element_of(a.type),
        )
        for value, other in ((a, b), (b, a))
    )
    return build.broadcasting(name, first, second)


def rounded(build: OpBuilder, x: SSAValue, to_even: bool) -> SSAValue:
    """Rounds to the nearest integer, ties to even or away from zero; keeps the sign of zeros.

    Ties away from zero use the fraction above the floor, which is exact in every type; adding a
    half may itself round up.
    """
    if to_even:
        return build.like("round", x)
    size = build.like("abs", x)
    below = build.like("floor", size)
    fraction = build.like("subtract", size, below)
    up = _compared(build, "ge", fraction, 0.5)
    found = build.like("add", below, build.typecast(up, element_of(x.type)))
    negative = build.like("signbit", x, element=i1)
    return build.emit("where", [negative, build.like("neg", found), found], x.type)


def _hyperbolic(name: str) -> SpecialFunction:
    """`(e^x + e^-x) / 2`, or with a difference."""

    def function(build: OpBuilder, x: SSAValue) -> SSAValue:
        minus = build.like("exp", build.like("neg", x))
        both = build.like(name, build.like("exp", x), minus)
        return build.like("multiply", both, _number(build, 0.5, x))

    return function


def _acosh(build: OpBuilder, x: SSAValue) -> SSAValue:
    """`log(x + sqrt(x + 1) * sqrt(x - 1))`, whose product does not overflow.

    Large x use `log(x) + log(2)`, as their double may be infinite.
    """
    result = element_of(x.type)
    x = build.typecast(x, f32)
    roots = [build.like("sqrt", _shifted(build, x, offset)) for offset in (1.0, -1.0)]
    large = _compared(build, "gt", x, 1e18)
    both = build.like("add", x, build.like("multiply", *roots))
    found = build.like("log", build.emit("where", [large, x, both], x.type))
    more = build.like("multiply", build.typecast(large, f32), _number(build, log(2), x))
    return build.typecast(build.like("add", found, more), result)


def _atanh(build: OpBuilder, x: SSAValue) -> SSAValue:
    """`(log1p(x) - log1p(-x)) / 2`."""
    minus = build.like("log1p", build.like("neg", x))
    both = build.like("subtract", build.like("log1p", x), minus)
    return build.like("multiply", both, _number(build, 0.5, x))


def _inverse_error_function(build: OpBuilder, x: SSAValue) -> SSAValue:
    """Two polynomials in `-log(1 - x^2)` (M. Giles, Approximating the erfinv function, 2012)."""
    result = element_of(x.type)
    x = build.typecast(x, f32)
    square = build.like("neg", build.like("multiply", x, x))
    w = build.like("neg", build.like("log1p", square))
    small = build.like("lt", w, _number(build, 5.0, w), element=i1)
    central = polynomial(build, _ERF_INV_CENTRAL, _shifted(build, w, -2.5))
    tail = polynomial(build, _ERF_INV_TAIL, _shifted(build, build.like("sqrt", w), -3.0))
    factor = build.emit("where", [small, central, tail], x.type)
    at_end = build.like("eq", build.like("abs", x), _number(build, 1.0, x), element=i1)
    infinite = build.like("multiply", x, _number(build, inf, x))
    found = build.like("multiply", factor, x)
    return build.typecast(build.emit("where", [at_end, infinite, found], x.type), result)


def _reflect_below_half(build: OpBuilder, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Reflection of gamma functions: mask of x < 1/2, and 1 - x there, else x."""
    below = build.like("lt", x, _number(build, 0.5, x), element=i1)
    mirrored = _shifted(build, build.like("neg", x), 1.0)
    return below, build.emit("where", [below, mirrored, x], x.type)


def _distance_to_integer(build: OpBuilder, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Returns the distance to the nearest integer and a mask of gamma's poles.

    Sine and tangent of pi times the distance have the same magnitude as those of pi times x.
    """
    nearest = build.like("floor", _shifted(build, x, 0.5))
    distance = build.like("subtract", x, nearest)
    whole, below = _compared(build, "eq", distance, 0.0), _compared(build, "le", x, 0.0)
    return distance, build.like("logical_and", whole, below, element=i1)


def _log_gamma(build: OpBuilder, x: SSAValue) -> SSAValue:
    """Lanczos approximation with g = 7 and 9 terms; reflected below 1/2."""
    result = element_of(x.type)
    x = build.typecast(x, f32)
    below, mirrored = _reflect_below_half(build, x)
    z = _shifted(build, mirrored, -1.0)
    total = build.full(shape_of(x.type), _LANCZOS[0], f32)
    for index, coefficient in enumerate(_LANCZOS[1:], start=1):
        inverse = build.like("reciprocal", _shifted(build, z, float(index)))
        term = build.like("multiply", inverse, _number(build, coefficient, x))
        total = build.like("add", total, term)
    t = _shifted(build, z, 7.5)
    power = build.like("multiply", _shifted(build, z, 0.5), build.like("log", t))
    found = build.like("subtract", build.like("log", total), t)
    found = _shifted(build, build.like("add", found, power), 0.5 * log(2 * pi))
    distance, is_pole = _distance_to_integer(build, x)
    angle = build.like("multiply", build.like("abs", distance), _number(build, pi, x))
    sine = build.like("log", build.like("sin", angle))
    other = build.like("neg", _shifted(build, build.like("add", sine, found), -log(pi)))
    found = build.emit("where", [below, other, found], x.type)
    size = build.like("abs", x)
    infinite = build.like("logical_or", is_pole, _compared(build, "eq", size, inf), element=i1)
    found = build.emit("where", [infinite, _number(build, inf, x), found], x.type)
    return build.typecast(found, result)


def _digamma(build: OpBuilder, x: SSAValue) -> SSAValue:
    """Stirling's series after six steps of the recurrence; reflected below 1/2."""
    result = element_of(x.type)
    x = build.typecast(x, f32)
    below, z = _reflect_below_half(build, x)
    steps: SSAValue | None = None
    for _ in range(6):
        inverse = build.like("reciprocal", z)
        steps = inverse if steps is None else build.like("add", steps, inverse)
        z = _shifted(build, z, 1.0)
    assert steps is not None
    inverse = build.like("reciprocal", z)
    squared = build.like("square", inverse)
    series = build.like(
        "multiply", polynomial(build, (1 / 252, -1 / 120, 1 / 12), squared), squared
    )
    half = build.like("multiply", inverse, _number(build, 0.5, z))
    found = build.like("subtract", build.like("log", z), half)
    found = build.like("subtract", build.like("subtract", found, series), steps)
    distance, is_pole = _distance_to_integer(build, x)
    angle = build.like("multiply", distance, _number(build, pi, x))
    cotangent = build.like("multiply", build.like("reciprocal", build.like("tan", angle)),
                           _number(build, pi, x))  # fmt: skip
    other = build.like("subtract", found, cotangent)
    found = build.emit("where", [below, other, found], x.type)
    found = build.emit("where", [is_pole, _number(build, nan, x), found], x.type)
    return build.typecast(found, result)


_BESSEL_SMALL = (9.38153738649577178388e-9, -4.44505912879632808065e-8, 2.00329475355213526229e-7,
                 -8.56872026469545474066e-7, 3.47025130813767847674e-6, -1.32731636560394358279e-5,
                 4.78156510755005422638e-5, -1.61760815825896745588e-4, 5.12285956168575772895e-4,
                 -1.51357245063125314899e-3, 4.15642294431288815669e-3, -1.05640848946261981558e-2,
                 2.47264490306265168283e-2, -5.29459812080949914269e-2, 1.02643658689847095384e-1,
                 -1.76416518357834055153e-1, 2.52587186443633654823e-1)  # fmt: skip
_BESSEL_LARGE = (-3.83538038596423702205e-9, -2.63146884688951950684e-8, -2.51223623787020892529e-7,
                 -3.88256480887769039346e-6, -1.10588938762623716291e-4, -9.76109749136146840777e-3,
                 7.78576235018280120474e-1)  # fmt: skip
"""Chebyshev coefficients (Cephes, i1f.c), highest degree first."""


def _chebyshev(build: OpBuilder, coefficients: Sequence[float], x: SSAValue) -> SSAValue:
    """Evaluates a Chebyshev series by Clenshaw's recurrence."""
    first, second = _number(build, coefficients[0], x), _number(build, 0.0, x)
    before = second
    for coefficient in coefficients[1:]:
        before, second = second, first
        product = build.broadcasting("multiply", x, second)
        first = build.broadcasting("subtract", product, before)
        first = build.broadcasting("add", first, _number(build, coefficient, x))
    difference = build.broadcasting("subtract", first, before)
    return build.like("multiply", difference, _number(build, 0.5, x))


def _scaled_bessel_1(build: OpBuilder, x: SSAValue) -> SSAValue:
    """`exp(-|x|) I1(x)`, the modified Bessel function of the first kind and order 1."""
    result = element_of(x.type)
    x = build.typecast(x, f32)
    size = build.like("abs", x)
    half = build.like("multiply", size, _number(build, 0.5, x))
    small = build.like("multiply", _chebyshev(build, _BESSEL_SMALL, _shifted(build, half, -2.0)),
                       size)  # fmt: skip
    inverse = build.like("multiply", build.like("reciprocal", size), _number(build, 32.0, x))
    large = build.like("multiply", _chebyshev(build, _BESSEL_LARGE, _shifted(build, inverse, -2.0)),
                       build.like("rsqrt", size))  # fmt: skip
    found = build.emit("where", [_compared(build, "le", size, 8.0), small, large], x.type)
    below = _compared(build, "lt", x, 0.0)
    found = build.emit("where", [below, build.like("neg", found), found], x.type)
    return build.typecast(found, result)


SPECIAL_FUNCTIONS: Mapping[str, SpecialFunction] = {
    "acosh": _acosh,
    "atanh": _atanh,
    "bessel_i1e": _scaled_bessel_1,
    "cosh": _hyperbolic("add"),
    "digamma": _digamma,
    "erfinv": _inverse_error_function,
    "lgamma": _log_gamma,
    "sinh": _hyperbolic("subtract"),
}
"""Special functions by their name in math libraries."""


# Bit patterns of floats.


def bits_of_float(build: OpBuilder, value: SSAValue) -> SSAValue:
    """Bits of floats as unsigned integers: ui16 of bf16 for bf16 and f16, else ui32."""
    if element_of(value.type) in (bf16, f16):
        return build.like("bitcast_convert", build.typecast(value, bf16), element=ui16)
    return build.like("bitcast_convert", build.typecast(value, f32), element=ui32)


def float_of_bits(build: OpBuilder, bits: SSAValue) -> SSAValue:
    """Inverse of `bits_of_float`."""
    element = bf16 if element_of(bits.type) == ui16 else f32
    return build.like("bitcast_convert", bits, element=element)


def _signed_bits(build: OpBuilder, value: SSAValue) -> SSAValue:
    if element_of(value.type) in (bf16, f16):
        return build.typecast(bits_of_float(build, value), i32)
    return build.like("bitcast_convert", build.typecast(value, f32), element=i32)


def total_order(build: OpBuilder, value: SSAValue) -> SSAValue:
    """Integers in the total order of floats (IEEE 754, 5.10): -NaN, numbers, signed zeros, NaN."""
    bits = build.like("bitcast_convert", build.typecast(value, f32), element=i32)
    # Negative floats order by descending magnitude: invert all bits but the sign.
    shape = shape_of(bits.type)
    mask = build.full(shape, (1 << 31) - 1, i32)
    negative = build.like("lt", bits, build.full(shape, 0, i32), element=i1)
    turned = build.like("bitwise_xor", bits, mask)
    return build.emit("where", [negative, turned, bits], bits.type)


def next_after(build: OpBuilder, x: SSAValue, towards: SSAValue) -> SSAValue:
    """Next representable number after `x` in the direction of `towards`.

    Steps the bit pattern as an integer; next to zero is the smallest subnormal with the sign of
    `towards`.
    """
    element, shape = element_of(x.type), shape_of(x.type)
    is_short = element in (bf16, f16)
    bits = [_signed_bits(build, each) for each in (x, towards)]
    sign = 1 << (15 if is_short else 31)
    one, minus = (build.full(shape, number, i32) for number in (1, -1))
    zero = build.full(shape, 0.0, element)
    above = build.like("gt", towards, x, element=i1)
    positive = build.like("gt", x, zero, element=i1)
    away = build.like("eq", above, positive, element=i1)
    step = build.emit("where", [away, one, minus], bits[0].type)
    found = build.like("add", bits[0], step)
    # The sign bit of 32 signed bits is the lowest integer.
    own = sign if sign < 1 << 31 else -sign
    signed = build.like("bitwise_and", bits[1], build.full(shape, own, i32))
    smallest = build.like("bitwise_or", signed, one)
    is_zero = build.like("eq", x, zero, element=i1)
    found = build.emit("where", [is_zero, smallest, found], bits[0].type)
    same = build.like("eq", x, towards, element=i1)
    found = build.emit("where", [same, bits[1], found], bits[0].type)
    if is_short:
        found = float_of_bits(build, build.typecast(found, ui16))
    else:
        found = build.like("bitcast_convert", found, element=f32)
    found = build.typecast(found, element)
    # NaN of either operand stays NaN.
    for each in (x, towards):
        is_nan = build.like("ne", each, each, element=i1)
        found = build.emit("where", [is_nan, each, found], x.type)
    return found


# Quotients and remainders, rounded as sources say: exact, whatever their size.


def truncated(build: OpBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    """Quotient rounded towards zero, as TTIR divides integers."""
    return build.broadcasting("div", a, b)


def rest_of(build: OpBuilder, a: SSAValue, b: SSAValue, quotient: SSAValue) -> SSAValue:
    """Remainder of `a` for a given quotient."""
    return build.broadcasting("subtract", a, build.broadcasting("multiply", quotient, b))


def floored(build: OpBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    """Floor division: the truncated quotient, minus 1 for a remainder of the other sign than the
    divisor."""
    whole = truncated(build, a, b)
    if is_unsigned(element_of(a.type)):
        return whole
    rest = rest_of(build, a, b, whole)
    below = [_compared_with_zero(build, "lt", value) for value in (rest, b)]
    return build.broadcasting("subtract", whole, _correction(build, rest, "ne", *below))


def raised(build: OpBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    """Ceiling division: the truncated quotient, plus 1 for a remainder of the divisor's sign."""
    whole = truncated(build, a, b)
    rest = rest_of(build, a, b, whole)
    below = [_compared_with_zero(build, "lt", value) for value in (rest, b)]
    return build.broadcasting("add", whole, _correction(build, rest, "eq", *below))


def sign_of_float(build: OpBuilder, x: SSAValue, of_nan: float) -> SSAValue:
    """Sign of floats with `of_nan` for NaN, for which TTIR returns the sign bit."""
    found, is_nan = build.like("sign", x), build.like("isnan", x, element=i1)
    return build.broadcasting(
        "where", is_nan, _number(build, of_nan, x), found, element=element_of(x.type)
    )


def float_rest(build: OpBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    """C's `fmod`, whose sign is the dividend's; TTIR's remainder has the divisor's."""
    size = build.broadcasting("remainder", build.like("abs", a), build.like("abs", b))
    return build.broadcasting("multiply", build.like("sign", a), size)


def float_floored(build: OpBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    """Floor division of floats by their exact remainder, as in Python, PyTorch and jax.

    1.0 by 0.1 is 9: the float nearest to 0.1 is above it, and only the quotient rounds to 10. NaN
    for infinite dividends; the quotient for divisors of 0.
    """
    rest = float_rest(build, a, b)
    whole = build.broadcasting("div", build.broadcasting("subtract", a, rest), b)
    below = [_compared_with_zero(build, "lt", value) for value in (rest, b)]
    whole = build.broadcasting("subtract", whole, _correction(build, rest, "ne", *below))
    # An integer up to the rounding of the difference and of the quotient.
    floor = build.like("floor", whole)
    up = _compared(build, "gt", build.like("subtract", whole, floor), 0.5)
    whole = build.like("add", floor, build.typecast(up, element_of(whole.type)))
    quotient = build.broadcasting("div", a, b)
    return build.broadcasting(
        "where", _compared_with_zero(build, "eq", b), quotient, whole, element=element_of(a.type)
    )


def is_unsigned(element: Attribute) -> bool:
    """Returns whether an element type is an unsigned integer."""
    return (numpy_name(element) or "").startswith("uint")


def _compared_with_zero(build: OpBuilder, name: str, value: SSAValue) -> SSAValue:
    """Comparison with 0."""
    zero = build.full([1] * len(shape_of(value.type)), 0, element_of(value.type))
    return build.broadcasting(name, value, zero, element=i1)


def _correction(
    build: OpBuilder, rest: SSAValue, signs: str, first: SSAValue, second: SSAValue
) -> SSAValue:
    """1 where the remainder is not 0 and `signs` holds for two masks, else 0."""
    chosen = build.broadcasting(signs, first, second, element=i1)
    found = build.broadcasting(
        "logical_and", _compared_with_zero(build, "ne", rest), chosen, element=i1
    )
    return build.typecast(found, element_of(rest.type))


# Complex tensors as pairs of real ones, as which devices compute with them.


@dataclass(frozen=True, slots=True)
class Complex:
    """Complex tensor as its real and imaginary parts, both of its shape."""

    real: SSAValue
    imag: SSAValue


def joined(build: OpBuilder, value: Complex) -> SSAValue:
    """Stacks the parts in a new last dimension of size 2."""
    shape = shape_of(value.real.type)
    parts = [build.reshape(part, [*shape, 1]) for part in (value.real, value.imag)]
    return build.concat(parts, len(shape))


def parted(build: OpBuilder, pairs: SSAValue) -> Complex:
    """Splits a tensor whose last dimension of size 2 holds real and imaginary parts."""
    *shape, _ = shape_of(pairs.type)
    parts = (build.slice_dim(pairs, len(shape), index, index + 1) for index in (0, 1))
    return Complex(*(build.reshape(part, shape) for part in parts))
