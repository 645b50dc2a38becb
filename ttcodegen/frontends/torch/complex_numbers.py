"""Complex numbers, as pairs of real tensors.

Rotary embeddings are written with them: `view_as_complex`, a product with `torch.polar(...)`,
`view_as_real`. Operations that only move elements do so with both parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.ir import SSAValue

from ttcodegen.diagnostics import CompileError
from ttcodegen.dialects.datatypes import element_of, shape_of
from ttcodegen.frontends.complex_pairs import Complex, joined, parted
from ttcodegen.frontends.torch.graph import Graph, Number, Rule

Value = Complex | SSAValue | Number
ComplexRule = Callable[..., "Value"]


def translated(
    graph: Graph, name: str, rule: Rule | None, arguments: Sequence[Any], named: dict[str, Any]
) -> Any:
    """What an operation on complex numbers gives.

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


_RULES: dict[str, ComplexRule] = {
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

_PARTWISE = frozenset(
    """
    view reshape _unsafe_view flatten unflatten squeeze unsqueeze ravel view_as reshape_as permute
    transpose swapaxes t mT movedim expand expand_as broadcast_to cat concat stack split
    split_with_sizes chunk tensor_split unbind select slice narrow flip roll repeat tile
    repeat_interleave index index_select embedding gather constant_pad_nd neg sum mean
    """.split()
)
"""What is done to both parts alike."""
