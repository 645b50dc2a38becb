"""Functions of one tensor that TTIR has no op for, as the ops that compute them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, log, nan, pi

from xdsl.ir import SSAValue

from ttcodegen.dialects.datatypes import element_of, f32, i1, shape_of
from ttcodegen.ops.op_builder import OpBuilder

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
    """That of these coefficients, the highest power's first, by Horner's rule."""
    total = _shifted(
        build, build.like("multiply", x, _number(build, coefficients[0], x)), coefficients[1]
    )
    for coefficient in coefficients[2:]:
        total = _shifted(build, build.like("multiply", total, x), coefficient)
    return total


def _hyperbolic(name: str) -> SpecialFunction:
    """`(e^x + e^-x) / 2`, or with a difference."""

    def function(build: OpBuilder, x: SSAValue) -> SSAValue:
        minus = build.like("exp", build.like("neg", x))
        both = build.like(name, build.like("exp", x), minus)
        return build.like("multiply", both, _number(build, 0.5, x))

    return function


def _acosh(build: OpBuilder, x: SSAValue) -> SSAValue:
    """`log(x + sqrt(x + 1) * sqrt(x - 1))`; the product of the roots does not overflow."""
    roots = [build.like("sqrt", _shifted(build, x, offset)) for offset in (1.0, -1.0)]
    return build.like("log", build.like("add", x, build.like("multiply", *roots)))


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


def _below_half(build: OpBuilder, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Whether x is less than a half, and 1 - x where it is: there gamma functions are reflected."""
    below = build.like("lt", x, _number(build, 0.5, x), element=i1)
    mirrored = _shifted(build, build.like("neg", x), 1.0)
    return below, build.emit("where", [below, mirrored, x], x.type)


def _at_pole(build: OpBuilder, x: SSAValue) -> SSAValue:
    """Whether x is zero or a negative integer, where gamma functions have no value."""
    whole = build.like("eq", build.like("floor", x), x, element=i1)
    not_positive = build.like("le", x, _number(build, 0.0, x), element=i1)
    return build.like("logical_and", whole, not_positive, element=i1)


def _settled(build: OpBuilder, where: SSAValue, value: float, found: SSAValue) -> SSAValue:
    """One value where a condition holds, what was found elsewhere."""
    return build.emit("where", [where, _number(build, value, found), found], found.type)


def _log_gamma(build: OpBuilder, x: SSAValue) -> SSAValue:
    """Lanczos' sum with 7 and 9 terms; below a half by reflection."""
    result = element_of(x.type)
    x = build.typecast(x, f32)
    below, mirrored = _below_half(build, x)
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
    angle = build.like("multiply", build.like("abs", x), _number(build, pi, x))
    sine = build.like("log", build.like("abs", build.like("sin", angle)))
    other = build.like("neg", _shifted(build, build.like("add", sine, found), -log(pi)))
    found = build.emit("where", [below, other, found], x.type)
    return build.typecast(_settled(build, _at_pole(build, x), inf, found), result)


def _digamma(build: OpBuilder, x: SSAValue) -> SSAValue:
    """Stirling's series, six steps up by recurrence; below a half by reflection."""
    result = element_of(x.type)
    x = build.typecast(x, f32)
    below, z = _below_half(build, x)
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
    angle = build.like("multiply", x, _number(build, pi, x))
    cotangent = build.like("multiply", build.like("reciprocal", build.like("tan", angle)),
                           _number(build, pi, x))  # fmt: skip
    other = build.like("subtract", found, cotangent)
    found = build.emit("where", [below, other, found], x.type)
    return build.typecast(_settled(build, _at_pole(build, x), nan, found), result)


SPECIAL_FUNCTIONS: Mapping[str, SpecialFunction] = {
    "acosh": _acosh,
    "atanh": _atanh,
    "cosh": _hyperbolic("add"),
    "digamma": _digamma,
    "erfinv": _inverse_error_function,
    "lgamma": _log_gamma,
    "sinh": _hyperbolic("subtract"),
}
"""By the names that they have in mathematics libraries."""
