"""Quotients and remainders of integers, rounded as sources say: exact, whatever their size."""

from __future__ import annotations

from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, i1, numpy_name, shape_of
from ttcodegen.ops.core.builder import OpBuilder


def truncated(build: OpBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    """The quotient rounded towards zero, which is what TTIR divides integers to."""
    return build.broadcasting("div", a, b)


def rest_of(build: OpBuilder, a: SSAValue, b: SSAValue, quotient: SSAValue) -> SSAValue:
    """Remainder of `a` for a given quotient."""
    return build.broadcasting("subtract", a, build.broadcasting("multiply", quotient, b))


def floored(build: OpBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    """The quotient rounded down: one less where there is a rest of another sign than the
    divisor's."""
    whole = truncated(build, a, b)
    if is_unsigned(element_of(a.type)):
        return whole
    rest = rest_of(build, a, b, whole)
    below = [_compared(build, "lt", value) for value in (rest, b)]
    return build.broadcasting("subtract", whole, _where_rest(build, rest, "ne", *below))


def raised(build: OpBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    """The quotient rounded up: one more where there is a rest of the divisor's sign."""
    whole = truncated(build, a, b)
    rest = rest_of(build, a, b, whole)
    below = [_compared(build, "lt", value) for value in (rest, b)]
    return build.broadcasting("add", whole, _where_rest(build, rest, "eq", *below))


def is_unsigned(element: Attribute) -> bool:
    """True if it is an integer type without a sign."""
    return (numpy_name(element) or "").startswith("uint")


def _compared(build: OpBuilder, name: str, value: SSAValue) -> SSAValue:
    """With 0."""
    zero = build.full([1] * len(shape_of(value.type)), 0, element_of(value.type))
    return build.broadcasting(name, value, zero, element=i1)


def _where_rest(
    build: OpBuilder, rest: SSAValue, signs: str, first: SSAValue, second: SSAValue
) -> SSAValue:
    """1 where there is a rest, and two truth values are equal, or not."""
    chosen = build.broadcasting(signs, first, second, element=i1)
    found = build.broadcasting("logical_and", _compared(build, "ne", rest), chosen, element=i1)
    return build.typecast(found, element_of(rest.type))
