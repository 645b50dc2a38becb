"""Complex numbers, as pairs of real tensors.

Rotary embeddings are written with them: `view_as_complex`, a product with `torch.polar(...)`,
`view_as_real`. Operations that only move elements do so with both parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod, sqrt
from typing import Any, cast

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, i1, shape_of, tensor_type
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends import fourier
from ttcodegen.frontends.matrices.matrix import Matrix
from ttcodegen.frontends.special_functions import Complex, joined, parted
from ttcodegen.frontends.torch import linear_algebra
from ttcodegen.frontends.torch.graph import Graph, Number, Rule, kind_of

Value = Complex | SSAValue | Number
ComplexRule = Callable[..., "Value | list[Any]"]


def translated(
    graph: Graph, name: str, rule: Rule | None, arguments: Sequence[Any], named: dict[str, Any]
) -> Any:
    """Translates an operation on complex numbers.

    Raises:
        CompileError: if there is no rule for it.
    """
    if (own := _RULES.get(name)) is not None:
        return own(graph, *arguments, **named)
    if rule is None or name not in _PARTWISE | _PRODUCTS | _OF_SIZES:
        raise CompileError(
            f"'{name}' of complex numbers is not supported",
            remedy="compute with cosines and sines, as pairs of real tensors",
        )
    if name in _OF_SIZES:
        return rule(graph, _size(graph, arguments[0]), *arguments[1:], **named)
    if name in _PRODUCTS:
        return _product(graph, rule, *(_complex_of(graph, each) for each in arguments))
    parts = [
        rule(graph, *(_part_of(graph, a, part) for a in arguments), **named)
        for part in ("real", "imag")
    ]
    if isinstance(parts[0], SSAValue):
        return Complex(*cast("list[SSAValue]", parts))
    return [Complex(*pair) for pair in zip(*cast("Any", parts), strict=True)]


def _product(graph: Graph, rule: Rule, a: Complex, b: Complex) -> Complex:
    """A product of sums over elements, by four of real tensors."""

    def product(x: SSAValue, y: SSAValue) -> SSAValue:
        return cast("SSAValue", rule(graph, x, y))

    return Complex(
        graph.like("subtract", product(a.real, b.real), product(a.imag, b.imag)),
        graph.like("add", product(a.real, b.imag), product(a.imag, b.real)),
    )


def _part_of(graph: Graph, argument: Any, part: str) -> Any:
    if isinstance(argument, Complex):
        return getattr(argument, part)
    if isinstance(argument, list):
        # Of tensors that are joined, real ones have no imaginary part.
        listed = cast("list[Any]", argument)
        mixed = any(isinstance(each, Complex) for each in listed)
        return [_part_of(graph, _complex_of(graph, each) if mixed else each, part)
                for each in listed]  # fmt: skip
    return argument


def _complex_of(graph: Graph, value: Value) -> Complex:
    if isinstance(value, Complex):
        return value
    real = graph.value(value, rank=len(graph.shape))
    return Complex(real, graph.full(shape_of(real.type), 0.0, element_of(real.type)))


def complex_number(graph: Graph, value: complex) -> Complex:
    """A complex number in a model's code, in the type of the parts of the result."""
    element = graph.element if kind_of(graph.element) == "f" else f32
    return Complex(graph.full([], value.real, element), graph.full([], value.imag, element))


def _add(graph: Graph, a: Value, b: Value, alpha: float = 1) -> Complex:
    return _sum(graph, "add", a, b, alpha)


def _subtract(graph: Graph, a: Value, b: Value, alpha: float = 1) -> Complex:
    return _sum(graph, "subtract", a, b, alpha)


def _subtract_from(graph: Graph, a: Value, b: Value, alpha: float = 1) -> Complex:
    return _sum(graph, "subtract", b, _complex_of(graph, a), alpha)


def _sum(graph: Graph, name: str, a: Value, b: Value, alpha: float) -> Complex:
    left, right = _complex_of(graph, a), _complex_of(graph, b)
    if alpha != 1:
        right = _scaled(graph, right, alpha)
    return Complex(
        graph.broadcasting(name, left.real, right.real),
        graph.broadcasting(name, left.imag, right.imag),
    )


def _scaled(graph: Graph, value: Complex, factor: SSAValue | Number) -> Complex:
    return Complex(
        graph.apply("multiply", value.real, factor), graph.apply("multiply", value.imag, factor)
    )


def _multiply(graph: Graph, a: Value, b: Value) -> Complex:
    if not isinstance(b, Complex):
        return _scaled(graph, _complex_of(graph, a), b)
    if not isinstance(a, Complex):
        return _scaled(graph, b, a)

    def product(x: SSAValue, y: SSAValue) -> SSAValue:
        return graph.broadcasting("multiply", x, y)

    return Complex(
        graph.like("subtract", product(a.real, b.real), product(a.imag, b.imag)),
        graph.like("add", product(a.real, b.imag), product(a.imag, b.real)),
    )


def _divide(graph: Graph, a: Value, b: Value) -> Complex:
    """Complex division: multiplies by the conjugate over the squared magnitude."""
    if not isinstance(b, Complex):
        divided = _complex_of(graph, a)
        return Complex(graph.apply("div", divided.real, b), graph.apply("div", divided.imag, b))
    size = _square_size(graph, b)
    above = _multiply(graph, _complex_of(graph, a), _conjugate(graph, b))
    return Complex(
        graph.broadcasting("div", above.real, size), graph.broadcasting("div", above.imag, size)
    )


def _square_size(graph: Graph, value: Complex) -> SSAValue:
    return graph.like("add", *(graph.like("square", p) for p in (value.real, value.imag)))


def _size(graph: Graph, value: Complex) -> SSAValue:
    return graph.like("sqrt", _square_size(graph, value))


def _angle(graph: Graph, value: Complex) -> SSAValue:
    return graph.like("atan2", value.imag, value.real)


def _conjugate(graph: Graph, value: Complex) -> Complex:
    return Complex(value.real, graph.like("neg", value.imag))


def _from_parts(graph: Graph, real: SSAValue, imag: SSAValue) -> Complex:
    return Complex(*(graph.expanded(part, graph.shape) for part in (real, imag)))


def _polar(graph: Graph, size: SSAValue, angle: SSAValue) -> Complex:
    parts = (graph.broadcasting("multiply", size, graph.like(n, angle)) for n in ("cos", "sin"))
    return Complex(*parts)


def _exponential(graph: Graph, value: Complex) -> Complex:
    return _polar(graph, graph.like("exp", value.real), value.imag)


def _logarithm(graph: Graph, value: Complex) -> Complex:
    return Complex(graph.like("log", _size(graph, value)), _angle(graph, value))


def _reciprocal(graph: Graph, value: Complex) -> Complex:
    size = _square_size(graph, value)
    below = _conjugate(graph, value)
    return Complex(graph.like("div", below.real, size), graph.like("div", below.imag, size))


_MOST_FACTORS = 8
"""Of powers that are products."""


def _power(graph: Graph, value: Value, exponent: SSAValue | Number) -> Complex:
    """Powers with exponents that are real numbers: whole ones are products, others turn."""
    base = _complex_of(graph, value)
    if isinstance(exponent, SSAValue):
        raise CompileError(
            "powers of complex numbers with an exponent that is a tensor are not supported",
            remedy="compute torch.exp(exponent * torch.log(value))",
        )
    count = abs(int(exponent))
    if exponent == int(exponent) and 0 < count <= _MOST_FACTORS:
        power = base
        for _ in range(count - 1):
            power = _multiply(graph, power, base)
        return power if exponent > 0 else _reciprocal(graph, power)
    size = graph.apply("pow", _size(graph, base), exponent)
    return _polar(graph, size, graph.apply("multiply", _angle(graph, base), exponent))


def _square(graph: Graph, value: Complex) -> Complex:
    return _multiply(graph, value, value)


def _root(graph: Graph, value: Complex) -> Complex:
    return _power(graph, value, 0.5)


def _adjoint(graph: Graph, value: Complex) -> Complex:
    rank = len(shape_of(value.real.type))
    turned = (graph.swapped(part, rank - 2, rank - 1) for part in (value.real, value.imag))
    return _conjugate(graph, Complex(*turned))


def _equal(graph: Graph, a: Value, b: Value) -> SSAValue:
    left, right = _complex_of(graph, a), _complex_of(graph, b)

    def equal(x: SSAValue, y: SSAValue) -> SSAValue:
        x, y = graph.together(x, y)
        return graph.compare("eq", x, y, i1)

    return graph.like("logical_and", equal(left.real, right.real), equal(left.imag, right.imag))


def _different(graph: Graph, a: Value, b: Value) -> SSAValue:
    return graph.like("logical_not", _equal(graph, a, b))


def _chosen(graph: Graph, mask: SSAValue, a: Value, b: Value) -> Complex:
    left, right = _complex_of(graph, a), _complex_of(graph, b)
    parts = ((left.real, right.real), (left.imag, right.imag))
    chosen = (
        graph.emit("where", [graph.expanded(each, graph.shape) for each in (mask, *pair)],
                   tensor_type(element_of(pair[0].type), graph.shape))
        for pair in parts
    )  # fmt: skip
    return Complex(*chosen)


def _filled(graph: Graph, value: Complex, mask: SSAValue, filling: Value) -> Complex:
    return _chosen(graph, mask, filling, value)


def _part(name: str) -> ComplexRule:
    def rule(graph: Graph, value: Value) -> Value:
        return getattr(value, name) if isinstance(value, Complex) else value

    return rule


def _to_complex(graph: Graph, value: Value, *_: Any, **__: Any) -> Value:
    """Conversion to complex; real values get an imaginary part of zeros."""
    return _complex_of(graph, value)


# Linear equations


def _solve(
    graph: Graph, a: Value, b: Value, *, left: bool = True, check_errors: bool = False
) -> list[Any]:
    """Solves a x = b, or x a = b, as real equations of real and imaginary parts.

    The factors, which are results as well, are not computed.
    """
    real, imag, above, below = (
        Matrix.computed(graph, part)
        for each in (_complex_of(graph, a), _complex_of(graph, b))
        for part in (each.real, each.imag)
    )
    above, below = (linear_algebra.as_columns(real, each) for each in (above, below))
    if not left:
        real, imag, above, below = real.T, imag.T, above.T, below.T
    whole = real.beside(-imag).above(imag.beside(real))
    x = linear_algebra.solution(whole, above.above(below))
    parts = (x.first_rows(real.rows), x.part((real.rows, x.rows), (0, x.columns)))
    found = (each if left else each.T for each in parts)
    info = graph.results[-1]
    return [
        Complex(*(graph.reshape(each.value, graph.shape) for each in found)),
        *[None] * (len(graph.results) - 2),
        graph.full(shape_of(info), 0, info.element_type),
    ]


def _inverse(graph: Graph, a: Complex, *, check_errors: bool = False) -> list[Any]:
    unit = Matrix.computed(graph, a.real)
    return _solve(graph, a, unit.identity(unit.rows, unit.rows).value)


# Fourier transforms


def _normalize(graph: Graph, value: Complex, count: int, mode: int) -> Complex:
    """Scales by 1/sqrt(count) (mode 1), 1/count (mode 2) or not at all (mode 0)."""
    if mode == 0:
        return value
    return _scaled(graph, value, 1 / (count if mode == 2 else sqrt(count)))


def _fourier(
    graph: Graph, value: Value, dims: Sequence[int], normalization: int, forward: bool
) -> Complex:
    given = _complex_of(graph, value)
    shape = shape_of(given.real.type)
    axes = [dim % len(shape) for dim in dims]
    made = fourier.transform(graph, given, axes, forward)
    return _normalize(graph, made, prod(shape[axis] for axis in axes), normalization)


def _fourier_of_real(
    graph: Graph, value: SSAValue, dims: Sequence[int], normalization: int, onesided: bool
) -> Complex:
    shape = shape_of(value.type)
    axes = [dim % len(shape) for dim in dims]
    given = graph.typecast(value, graph.element)
    made = fourier.transform_of_real(graph, given, axes, onesided)
    return _normalize(graph, made, prod(shape[axis] for axis in axes), normalization)


def _fourier_to_real(
    graph: Graph, value: Value, dims: Sequence[int], normalization: int, size: int
) -> SSAValue:
    given = _complex_of(graph, value)
    shape = shape_of(given.real.type)
    axes = [dim % len(shape) for dim in dims]
    made = fourier.transform_to_real(graph, given, axes, size)
    count = prod(shape[axis] for axis in axes[:-1]) * size
    return _normalize(graph, Complex(made, made), count, normalization).real


_RULES: dict[str, ComplexRule] = {
    "_linalg_solve_ex": _solve,
    "linalg_inv_ex": _inverse,
    "_fft_c2c": _fourier,
    "_fft_r2c": _fourier_of_real,
    "_fft_c2r": _fourier_to_real,
    "view_as_complex": parted,
    "view_as_real": joined,
    "real": _part("real"),
    "imag": _part("imag"),
    "complex": _from_parts,
    "polar": _polar,
    "abs": _size,
    "angle": _angle,
    "add": _add,
    "sub": _subtract,
    "rsub": _subtract_from,
    "mul": _multiply,
    "div": _divide,
    "exp": _exponential,
    "log": _logarithm,
    "reciprocal": _reciprocal,
    "pow": _power,
    "square": _square,
    "sqrt": _root,
    "eq": _equal,
    "ne": _different,
    "where": _chosen,
    "masked_fill": _filled,
    **dict.fromkeys(("mH", "matrix_H", "adjoint"), _adjoint),
    **dict.fromkeys(("conj", "_conj", "conj_physical", "_conj_physical"), _conjugate),
    **dict.fromkeys(("to", "_to_copy", "clone", "contiguous", "alias", "detach", "resolve_conj",
                     "lift_fresh_copy"), _to_complex),
}  # fmt: skip


def is_known(name: str) -> bool:
    """Returns whether an operation has a rule for complex operands."""
    return name in _RULES or name in _PARTWISE | _PRODUCTS | _OF_SIZES


_PARTWISE = frozenset(
    """
    view reshape _unsafe_view flatten unflatten squeeze unsqueeze ravel view_as reshape_as permute
    transpose swapaxes t mT movedim expand expand_as broadcast_to cat concat stack split
    split_with_sizes chunk tensor_split unbind select slice narrow flip roll repeat tile
    repeat_interleave index index_select embedding gather constant_pad_nd neg sum mean
    cumsum tril triu diagonal unfold
    """.split()
)
"""Operations that apply to real and imaginary part separately."""

_PRODUCTS = frozenset("matmul mm bmm mv dot".split())
"""Sums of products of elements of two tensors."""

_OF_SIZES = frozenset("linalg_vector_norm norm".split())
"""Operations that look at the magnitudes of elements alone."""
