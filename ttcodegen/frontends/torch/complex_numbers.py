"""Complex numbers, as pairs of real tensors.

Rotary embeddings are written with them: `view_as_complex`, a product with `torch.polar(...)`,
`view_as_real`. Operations that only move elements do so with both parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod, sqrt
from typing import Any, cast

import numpy as np
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.special_functions import Complex, joined, parted
from ttcodegen.frontends.torch.graph import Graph, Number, Rule

Value = Complex | SSAValue | Number
ComplexRule = Callable[..., "Value"]


def translated(
    graph: Graph, name: str, rule: Rule | None, arguments: Sequence[Any], named: dict[str, Any]
) -> Any:
    """Translates an operation on complex numbers.

    Raises:
        CompileError: if there is no rule for it.
    """
    if (own := _RULES.get(name)) is not None:
        return own(graph, *arguments, **named)
    if rule is None or name not in _PARTWISE:
        raise CompileError(
            f"'{name}' of complex numbers is not supported",
            remedy="compute with cosines and sines, as pairs of real tensors",
        )
    parts = [
        rule(graph, *(_part_of(graph, a, part) for a in arguments), **named)
        for part in ("real", "imag")
    ]
    if isinstance(parts[0], SSAValue):
        return Complex(*cast("list[SSAValue]", parts))
    return [Complex(*pair) for pair in zip(*cast("Any", parts), strict=True)]


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


def _add(graph: Graph, a: Value, b: Value, alpha: float = 1) -> Complex:
    return _sum(graph, "add", a, b, alpha)


def _subtract(graph: Graph, a: Value, b: Value, alpha: float = 1) -> Complex:
    return _sum(graph, "subtract", a, b, alpha)


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
    """By the conjugate over the square of the size."""
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


def _part(name: str) -> ComplexRule:
    def rule(graph: Graph, value: Value) -> Value:
        return getattr(value, name) if isinstance(value, Complex) else value

    return rule


def _converted(graph: Graph, value: Value, *_: Any, **__: Any) -> Value:
    """To another type: a real one gets an imaginary part of zeros."""
    return _complex_of(graph, value)


# Fourier transforms

_LONGEST_TRANSFORM = 2048
"""Of those that are products with a matrix of waves."""


def _waves(graph: Graph, size: int, forward: bool, element: Attribute) -> Complex:
    """The matrix of a transform, cosines and sines of all products of places."""
    if size > _LONGEST_TRANSFORM:
        raise CompileError(
            f"Fourier transforms of more than {_LONGEST_TRANSFORM} elements are not supported, "
            f"found {size}",
            remedy="compute them before or after the model",
        )
    places = np.arange(size)
    angles = 2 * np.pi / size * (np.outer(places, places) % size)
    sines = -np.sin(angles) if forward else np.sin(angles)
    return Complex(graph.constant(np.cos(angles), element), graph.constant(sines, element))


def _transformed(graph: Graph, value: Complex, axis: int, forward: bool) -> Complex:
    """A transform of one dimension, by four matmuls."""
    last = len(shape_of(value.real.type)) - 1
    size = shape_of(value.real.type)[axis]
    waves = _waves(graph, size, forward, element_of(value.real.type))
    turned = [graph.swapped(part, axis, last) for part in (value.real, value.imag)]

    def product(x: SSAValue, y: SSAValue) -> SSAValue:
        rows = graph.reshape(x, [prod(shape_of(x.type)[:-1]), size])
        return graph.reshape(graph.matmul(rows, y), shape_of(x.type))

    real = graph.like("subtract", product(turned[0], waves.real), product(turned[1], waves.imag))
    imag = graph.like("add", product(turned[0], waves.imag), product(turned[1], waves.real))
    return Complex(*(graph.swapped(part, axis, last) for part in (real, imag)))


def _normalized(graph: Graph, value: Complex, count: int, mode: int) -> Complex:
    """Over the root of the number of elements (1), over that number (2), or as it is (0)."""
    if mode == 0:
        return value
    return _scaled(graph, value, 1 / (count if mode == 2 else sqrt(count)))


def _fourier(
    graph: Graph, value: Value, dims: Sequence[int], normalization: int, forward: bool
) -> Complex:
    made = _complex_of(graph, value)
    shape = shape_of(made.real.type)
    axes = [dim % len(shape) for dim in dims]
    for axis in axes:
        made = _transformed(graph, made, axis, forward)
    return _normalized(graph, made, prod(shape[axis] for axis in axes), normalization)


def _fourier_of_real(
    graph: Graph, value: Value, dims: Sequence[int], normalization: int, onesided: bool
) -> Complex:
    """The first half of the last dimension, of which the other half is the conjugate."""
    made = _fourier(graph, value, dims, normalization, True)
    if not onesided:
        return made
    axis = dims[-1] % len(shape_of(made.real.type))
    count = shape_of(made.real.type)[axis] // 2 + 1
    return Complex(*(graph.part(part, axis, 0, count) for part in (made.real, made.imag)))


def _fourier_to_real(
    graph: Graph, value: Value, dims: Sequence[int], normalization: int, size: int
) -> SSAValue:
    """The inverse of a transform of real numbers: the half that is missing counts as the
    conjugate of the first, backwards."""
    made = _complex_of(graph, value)
    rank = len(shape_of(made.real.type))
    axes = [dim % rank for dim in dims]
    for axis in axes[:-1]:
        made = _transformed(graph, made, axis, False)
    axis = axes[-1]
    half = size // 2 + 1
    parts: list[SSAValue] = []
    for part, sign in ((made.real, 1), (made.imag, -1)):
        first = graph.part(part, axis, 0, half)
        count = size - half
        if count:
            rest = graph.part(part, axis, 1, count + 1)
            rest = graph.like("reverse", rest, dimensions=[axis])
            first = graph.concat([first, rest if sign > 0 else graph.like("neg", rest)], axis)
        parts.append(first)
    made = _transformed(graph, Complex(*parts), axis, False)
    counts = [shape_of(made.real.type)[each] for each in axes]
    return _normalized(graph, made, prod(counts), normalization).real


_RULES: dict[str, ComplexRule] = {
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
    "mul": _multiply,
    "div": _divide,
    "exp": _exponential,
    **dict.fromkeys(("conj", "_conj", "conj_physical", "_conj_physical"), _conjugate),
    **dict.fromkeys(("to", "_to_copy", "clone", "contiguous", "alias", "detach", "resolve_conj",
                     "lift_fresh_copy"), _converted),
}  # fmt: skip


def is_known(name: str) -> bool:
    """True if there is a rule for an operation of complex numbers."""
    return name in _RULES or name in _PARTWISE


_PARTWISE = frozenset(
    """
    view reshape _unsafe_view flatten unflatten squeeze unsqueeze ravel view_as reshape_as permute
    transpose swapaxes t mT movedim expand expand_as broadcast_to cat concat stack split
    split_with_sizes chunk tensor_split unbind select slice narrow flip roll repeat tile
    repeat_interleave index index_select embedding gather constant_pad_nd neg sum mean
    """.split()
)
"""Operations that apply to real and imaginary part separately."""
