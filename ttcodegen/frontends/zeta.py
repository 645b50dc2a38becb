"""Hurwitz zeta function and polygamma functions."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial, inf, nan, pi

from ttcodegen.frontends.expressions import Expression
from ttcodegen.frontends.special_functions import SPECIAL_FUNCTIONS, rounded

_EULER_MACLAURIN = (12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.8924375803183791606e9,
                    7.47242496e10, -2.950130727918164224e12, 1.1646782814350067249e14,
                    -4.5979787224074726105e15, 1.8152105401943546773e17,
                    -7.1661652561756670113e18)  # fmt: skip
"""(2k)! / B2k of the Euler-Maclaurin formula."""
_SUMMED = 9
"""Terms that are summed, and the minimum argument of the formula for the others."""
_LOWEST = 24
"""Largest number of negative terms: arguments are above its negative."""


def _tail(x: Expression | int, a: Expression, term: Expression, terms: int) -> Expression:
    """Euler-Maclaurin tail: sum of (a + k)^-x for k >= 1, minus half of `term` = a^-x."""
    total = term * a / (x - 1) - 0.5 * term
    factor: Expression | float = 1.0
    for index, denominator in enumerate(_EULER_MACLAURIN[:terms]):
        factor = (x + 2 * index) * factor
        term = term / a
        total = total + term * factor / denominator
        factor = (x + (2 * index + 1)) * factor
        term = term / a
    return total


def zeta(x: Expression, q: Expression) -> Expression:
    """Hurwitz zeta function: sum of (q + k)^-x."""
    total = term = q.apply("pow", -x)
    a = q
    for step in range(_SUMMED + _LOWEST):
        if step < _SUMMED:
            a = a + 1.0
            term = a.apply("pow", -x)
            total = total + term
        else:
            is_more = a <= float(_SUMMED)
            a = is_more.where(a + 1.0, a)
            term = is_more.where(a.apply("pow", -x), term)
            total = is_more.where(total + term, total)
    found = total + _tail(x, a, term, 8)
    is_negative, is_whole = q <= 0.0, q.equals(q.floor())
    found = (is_negative & ~is_whole & x.differs(x.floor())).where(nan, found)
    found = (is_negative & is_whole).where(inf, found)
    return x.equals(1.0).where(inf, (x < 1.0).where(nan, found))


def _zeta_of_order(order: int, a: Expression) -> Expression:
    """Hurwitz zeta function of integer order, for a >= 1/2."""
    total = term = a.apply("pow", -order)
    for _ in range(_SUMMED):
        a = a + 1.0
        term = a.apply("pow", -order)
        total = total + term
    return total + _tail(order, a, term, 6)


def _cotangent_derivative(order: int) -> list[float]:
    """Derivative of the cotangent as a polynomial in it, highest power first."""
    ascending = [0.0, 1.0]
    for _ in range(order):
        slope = [k * c for k, c in enumerate(ascending)][1:]
        ascending = [-a - b for a, b in zip([*slope, 0.0, 0.0], [0.0, 0.0, *slope], strict=True)]
    return ascending[::-1]


def _horner(coefficients: Sequence[float], x: Expression) -> Expression:
    total = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        total = total * x + coefficient
    return total


def _special(name: str, x: Expression) -> Expression:
    return x.of(SPECIAL_FUNCTIONS[name](x.build, x.value))


def polygamma(order: int, x: Expression) -> Expression:
    """Derivative of the digamma function by the zeta function; reflected below 1/2."""
    if order == 0:
        return _special("digamma", x)
    is_low = x < 0.5
    found = _zeta_of_order(order + 1, is_low.where(1.0 - x, x))
    found = found * float((-1) ** (order + 1) * factorial(order))
    angle = (x - x.of(rounded(x.build, x.value, True))) * pi
    cotangent = angle.apply("cos") / angle.apply("sin")
    turned = _horner(_cotangent_derivative(order), cotangent) * pi ** (order + 1)
    found = is_low.where(found * float((-1) ** order) - turned, found)
    is_pole = (x <= 0.0) & x.equals(x.floor())
    return is_pole.where(inf if order % 2 else (-inf if order > 1 else nan), found)


def polygamma_of_orders(order: Expression, x: Expression) -> Expression:
    """Derivatives of the digamma function, of the order of each element.

    NaN for orders that are not whole or below 0.
    """
    factor = _special("lgamma", order + 1.0).apply("exp")
    half = order * 0.5
    found = zeta(order + 1.0, x) * half.equals(half.floor()).where(-factor, factor)
    is_none = (order < 0.0) | order.differs(order.floor())
    return is_none.where(nan, order.equals(0.0).where(_special("digamma", x), found))
