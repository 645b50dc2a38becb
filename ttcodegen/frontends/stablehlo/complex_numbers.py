"""Complex numbers of StableHLO: pairs of real tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ComplexType
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, i1, shape_of
from ttcodegen.frontends.expressions import Expression
from ttcodegen.frontends.stablehlo.conversion import Complex, Conversion, Rule, Value
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp, part_element


def is_complex_element(element: Attribute) -> bool:
    """Returns whether an element type is complex."""
    return isinstance(element, ComplexType)


def as_complex(conversion: Conversion, value: Value) -> Complex:
    """Converts a value to complex; real tensors get an imaginary part of zeros."""
    if isinstance(value, Complex):
        return value
    if not isinstance(value, SSAValue):
        raise ValueError("a tensor is needed")
    return Complex(value, conversion.filled_like(0, value))


def unary(conversion: Conversion, name: str, value: Complex) -> Value:
    """Complex op of one operand; raises ValueError if it has no complex form."""
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
        case "sign":
            return _direction(conversion, value)
        case "acos" | "acosh" | "asin" | "atanh":
            return _inverse(conversion, value, name)
        case "sinh" | "tan" | "asinh" | "atan":
            # f(z) = -i g(iz)
            turned = Complex(b.like("neg", y), x)
            found = unary(conversion, _TURNED[name], turned)
            assert isinstance(found, Complex)
            return Complex(found.imag, b.like("neg", found.real))
        case "cosh":
            return unary(conversion, "cos", Complex(b.like("neg", y), x))
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


_TURNED = {"sinh": "sin", "tan": "tanh", "asinh": "asin", "atan": "atanh"}
"""Functions `g` of `f(z) = -i g(iz)`."""


def _direction(conversion: Conversion, value: Complex) -> Complex:
    """`z / |z|`, zero of zero."""
    size = unary(conversion, "abs", value)
    assert isinstance(size, SSAValue)
    zero = conversion.filled_like(0, size)
    is_zero = conversion.builder.like("eq", size, zero, element=i1)

    def part(of: SSAValue) -> SSAValue:
        share = conversion.builder.like("div", of, size)
        return conversion.builder.emit("where", [is_zero, zero, share], of.type)

    return Complex(part(value.real), part(value.imag))


def _inverse(conversion: Conversion, value: Complex, name: str) -> Complex:
    """Inverse functions as W. Kahan gives them ("Branch cuts for complex elementary functions"),
    which lose no digits near their branch points."""
    x, y = (Expression(conversion.builder, part) for part in (value.real, value.imag))
    if name == "atanh":
        # Of the magnitude: close to -1 the logarithm would be of a difference.
        size = abs(x)
        grown = (4 * size / ((1 - size) * (1 - size) + y * y)).apply("log1p") * 0.25
        real = (x < 0).where(-grown, grown)
        imag = (2 * y).apply("atan2", (1 - x) * (1 + x) - y * y) * 0.5
        return Complex(real.value, imag.value)

    def root(of: Expression, imag: Expression) -> tuple[Expression, Expression]:
        found = _root(conversion, Complex(of.value, imag.value), inverse=False)
        return x.of(found.real), x.of(found.imag)

    above, above_imag = root(x + 1, y)
    if name == "acosh":
        # The roots of z - 1 and z + 1.
        below, below_imag = root(x - 1, y)
        real = (below * above + below_imag * above_imag).apply("asinh")
        return Complex(real.value, (below_imag.apply("atan2", above) * 2).value)
    # The roots of 1 - z and 1 + z.
    below, below_imag = root(1 - x, -y)
    if name == "asin":
        real = x.apply("atan2", below * above - below_imag * above_imag)
        imag = (below * above_imag - below_imag * above).apply("asinh")
        return Complex(real.value, imag.value)
    real = below.apply("atan2", above) * 2
    imag = (above * below_imag - above_imag * below).apply("asinh")
    return Complex(real.value, imag.value)


def _rational(conversion: Conversion, value: Complex, name: str) -> Complex:
    """Exponentials and logarithms of complex numbers by `exp` and `log`."""
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
    """Complex op of two operands; raises ValueError if it has no complex form."""
    b = conversion.builder
    p, q = as_complex(conversion, left), as_complex(conversion, right)
    match name:
        case "add" | "subtract":
            return Complex(b.like(name, p.real, q.real), b.like(name, p.imag, q.imag))
        case "multiply":
            return multiplied(conversion, p, q)
        case "div":
            size = _norm(conversion, q)
            above = multiplied(conversion, p, Complex(q.real, b.like("neg", q.imag)))
            return Complex(b.like("div", above.real, size), b.like("div", above.imag, size))
        case "pow":
            logarithm = unary(conversion, "log", p)
            found = unary(conversion, "exp", binary(conversion, "multiply", logarithm, q))
            assert isinstance(found, Complex)
            return found
        case _:
            raise ValueError(f"'{name}' of complex numbers is not supported")


def multiplied(conversion: Conversion, p: Complex, q: Complex) -> Complex:
    """Product of complex numbers of one shape."""
    b = conversion.builder
    real = b.like(
        "subtract", b.like("multiply", p.real, q.real), b.like("multiply", p.imag, q.imag)
    )
    imag = b.like("add", b.like("multiply", p.real, q.imag), b.like("multiply", p.imag, q.real))
    return Complex(real, imag)


def compare(conversion: Conversion, name: str, left: Complex, right: Complex) -> SSAValue:
    """Equality or inequality of complex numbers; raises ValueError for an order."""
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
    """Converts the element type; complex to real keeps the real part."""
    b = conversion.builder
    if not isinstance(target, ComplexType):
        assert isinstance(value, Complex)
        return b.typecast(value.real, target)
    part = part_element(cast(Attribute, target))
    found = as_complex(conversion, value)
    return Complex(b.typecast(found.real, part), b.typecast(found.imag, part))


def both(conversion: Conversion, values: Sequence[Value]) -> tuple[list[SSAValue], list[SSAValue]]:
    """Splits values into their real and their imaginary parts."""
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
