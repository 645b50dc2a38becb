"""Arithmetic of complex numbers, as pairs of real tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ComplexType
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, i1, shape_of
from ttcodegen.frontends.stablehlo.conversion import Complex, Conversion, Rule, Value
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp, part_element


def is_complex_element(element: Attribute) -> bool:
    """True if an element type is complex."""
    return isinstance(element, ComplexType)


def as_complex(conversion: Conversion, value: Value) -> Complex:
    """A value as a complex one; real numbers have no imaginary part."""
    if isinstance(value, Complex):
        return value
    if not isinstance(value, SSAValue):
        raise ValueError("a tensor is needed")
    return Complex(value, conversion.filled_like(0, value))


def unary(conversion: Conversion, name: str, value: Complex) -> Value:
    """An op of one operand; raises ValueError if it has no meaning here."""
    b, x, y = conversion.builder, value.real, value.imag
    match name:
        case "neg":
            return Complex(b.like("neg", x), b.like("neg", y))
        case "abs":
            return b.like("sqrt", _norm(conversion, value))
        case "exp":
            size = b.like("exp", x)
            parts = (b.like("multiply", size, b.like(each, y)) for each in ("cos", "sin"))
            return Complex(*parts)
        case "log":
            size = b.like("log", b.like("sqrt", _norm(conversion, value)))
            return Complex(size, b.like("atan2", y, x))
        case "sqrt" | "rsqrt":
            return _root(conversion, value, inverse=name == "rsqrt")
        case "square":
            return binary(conversion, "multiply", value, value)
        case "isfinite":
            return b.like("logical_and", *(b.like("isfinite", p, element=i1) for p in (x, y)))
        case "sin" | "cos":
            return _circular(conversion, value, name)
        case "tanh" | "sigmoid" | "expm1" | "log1p":
            return _rational(conversion, value, name)
        case _:
            raise ValueError(f"'{name}' of complex numbers is not supported")


def _norm(conversion: Conversion, value: Complex) -> SSAValue:
    b = conversion.builder
    squares = [b.like("multiply", part, part) for part in (value.real, value.imag)]
    return b.like("add", *squares)


def _scaled(conversion: Conversion, value: Complex, factor: float) -> Complex:
    shape, element = shape_of(value.real.type), element_of(value.real.type)
    number = conversion.filled(factor, shape, element)
    b = conversion.builder
    return Complex(b.like("multiply", value.real, number), b.like("multiply", value.imag, number))


def _root(conversion: Conversion, value: Complex, inverse: bool) -> Complex:
    """`exp(log(z) / 2)`, with a minus for the inverse."""
    logarithm = unary(conversion, "log", value)
    assert isinstance(logarithm, Complex)
    found = unary(conversion, "exp", _scaled(conversion, logarithm, -0.5 if inverse else 0.5))
    assert isinstance(found, Complex)
    return found


def _circular(conversion: Conversion, value: Complex, name: str) -> Complex:
    """`sin(x) cosh(y) + i cos(x) sinh(y)`, `cos(x) cosh(y) - i sin(x) sinh(y)`."""
    b, x, y = conversion.builder, value.real, value.imag
    grown, shrunk = b.like("exp", y), b.like("exp", b.like("neg", y))
    half = conversion.filled_like(0.5, x)
    cosh = b.like("multiply", b.like("add", grown, shrunk), half)
    sinh = b.like("multiply", b.like("subtract", grown, shrunk), half)
    other = "cos" if name == "sin" else "sin"
    imag = b.like("multiply", b.like(other, x), sinh)
    if name == "cos":
        imag = b.like("neg", imag)
    return Complex(b.like("multiply", b.like(name, x), cosh), imag)


def _rational(conversion: Conversion, value: Complex, name: str) -> Complex:
    """Exponentials and logarithms of complex numbers, from a table of real formulas."""
    one = as_complex(
        conversion,
        conversion.filled(1, shape_of(value.real.type), element_of(value.real.type)),
    )

    def exponential(of: Complex) -> Value:
        return unary(conversion, "exp", of)

    if name == "expm1":
        return binary(conversion, "subtract", exponential(value), one)
    if name == "log1p":
        found = unary(conversion, "log", binary(conversion, "add", value, one))
        assert isinstance(found, Complex)
        return found
    factor = -1.0 if name == "sigmoid" else -2.0
    power = exponential(_scaled(conversion, value, factor))
    below = binary(conversion, "add", one, power)
    above = one if name == "sigmoid" else binary(conversion, "subtract", one, power)
    return binary(conversion, "div", above, below)


def binary(conversion: Conversion, name: str, left: Value, right: Value) -> Complex:
    """An op of two operands; raises ValueError if it has no meaning here."""
    b = conversion.builder
    p, q = as_complex(conversion, left), as_complex(conversion, right)
    match name:
        case "add" | "subtract":
            return Complex(b.like(name, p.real, q.real), b.like(name, p.imag, q.imag))
        case "multiply":
            return _product(conversion, p, q)
        case "div":
            size = _norm(conversion, q)
            above = _product(conversion, p, Complex(q.real, b.like("neg", q.imag)))
            return Complex(b.like("div", above.real, size), b.like("div", above.imag, size))
        case "pow":
            logarithm = unary(conversion, "log", p)
            found = unary(conversion, "exp", binary(conversion, "multiply", logarithm, q))
            assert isinstance(found, Complex)
            return found
        case _:
            raise ValueError(f"'{name}' of complex numbers is not supported")


def _product(conversion: Conversion, p: Complex, q: Complex) -> Complex:
    b = conversion.builder
    real = b.like(
        "subtract", b.like("multiply", p.real, q.real), b.like("multiply", p.imag, q.imag)
    )
    imag = b.like("add", b.like("multiply", p.real, q.imag), b.like("multiply", p.imag, q.real))
    return Complex(real, imag)


def compare(conversion: Conversion, name: str, left: Complex, right: Complex) -> SSAValue:
    """True if two complex numbers are equal, or not."""
    joined = {"eq": "logical_and", "ne": "logical_or"}.get(name)
    if joined is None:
        raise ValueError("complex numbers have no order")
    b = conversion.builder
    return b.like(
        joined,
        b.like(name, left.real, right.real, element=i1),
        b.like(name, left.imag, right.imag, element=i1),
    )


def convert(conversion: Conversion, value: Value, target: Attribute) -> Value:
    """A value with another element type; a real one of a complex number is its real part."""
    b = conversion.builder
    if not isinstance(target, ComplexType):
        assert isinstance(value, Complex)
        return b.typecast(value.real, target)
    part = part_element(cast(Attribute, target))
    found = as_complex(conversion, value)
    return Complex(b.typecast(found.real, part), b.typecast(found.imag, part))


def both(conversion: Conversion, values: Sequence[Value]) -> tuple[list[SSAValue], list[SSAValue]]:
    """The real and the imaginary parts of values."""
    parts = [as_complex(conversion, value) for value in values]
    return [part.real for part in parts], [part.imag for part in parts]


def _complex(conversion: Conversion, op: StableHLOOp) -> Value:
    real, imag = conversion.tensors(op)
    return Complex(real, imag)


def _part(name: str) -> Rule:
    def rule(conversion: Conversion, op: StableHLOOp) -> Value:
        value = conversion.value(op.operands[0])
        if isinstance(value, Complex):
            return getattr(value, name)
        if name == "real":
            return value
        return as_complex(conversion, value).imag

    return rule


def _conjugate(conversion: Conversion, op: StableHLOOp) -> Value:
    value = as_complex(conversion, conversion.value(op.operands[0]))
    return Complex(value.real, conversion.builder.like("neg", value.imag))


RULES: dict[str, Rule] = {
    "complex": _complex,
    "real": _part("real"),
    "imag": _part("imag"),
    "conj": _conjugate,
}
