"""Fusion of functions that jax.numpy, jax.nn and jax.scipy decompose."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import pytest
from xdsl.dialects.builtin import TensorType, i32
from xdsl.ir import Attribute, SSAValue

from tests.transforms.programs import Formulas, transformed
from ttcodegen.dialects.core.datatypes import bf16, element_of, f32, i1, shape_of
from ttcodegen.transforms.ttir.canonicalize import TTIRCanonicalizePass
from ttcodegen.transforms.ttir.fusing.rules import TTIRFusingPass


def names_after(p: Formulas, *results: SSAValue) -> list[str]:
    module = p.returns(*results)
    return transformed(module, TTIRCanonicalizePass(), TTIRFusingPass(), low=-4.0, high=4.0).names


def log_sum_exp(p: Formulas, x: SSAValue, guarded: bool, other: SSAValue | None = None) -> SSAValue:
    """`jax.scipy.special.logsumexp(x, -1, keepdims=True)`."""
    maximum = p.make.reduce("max", x, [1])
    if guarded:
        finite = p.make.like("isfinite", maximum, element=i1)
        zero = p.n("multiply", maximum, 0.0)
        maximum = p.make.emit("where", [finite, maximum, zero], maximum.type)
    wide = p.make.typecast(p.u("exp", p.b("subtract", x, maximum)), f32)
    total = p.make.typecast(p.make.reduce("sum", wide, [1]), element_of(x.type))
    total = p.u("log", p.u("abs", total) if guarded else total)
    return p.b("add", total, maximum if other is None else other)


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("element", [f32, bf16])
def test_softmax_through_its_logarithm(guarded: bool, element: Attribute) -> None:
    p = Formulas()
    x = p.argument(4, 8, element=element)
    result = p.u("exp", p.b("subtract", x, log_sum_exp(p, x, guarded)))
    # With care for infinite maxima, infinity makes zero of the others, where a softmax has NaN.
    assert ("softmax" in names_after(p, result)) is not guarded


def test_without_a_maximum_it_is_no_softmax() -> None:
    p = Formulas()
    x = p.argument(4, 8)
    total = p.u("log", p.make.reduce("sum", p.u("exp", x), [1]))
    assert "softmax" not in names_after(p, p.u("exp", p.b("subtract", x, total)))


def test_another_shift_is_no_softmax() -> None:
    p = Formulas()
    x = p.argument(4, 8)
    total = log_sum_exp(p, x, False, p.make.reduce("min", x, [1]))
    assert "softmax" not in names_after(p, p.u("exp", p.b("subtract", x, total)))


def normal_distribution(p: Formulas, x: SSAValue, middle: float = 2.0) -> SSAValue:
    """`jax.scipy.stats.norm.cdf`."""
    x = p.n("multiply", x, sqrt(0.5))
    size = p.u("abs", x)
    near = p.n("add", p.u("erf", x), 1.0)
    tail = p.u("erfc", size)
    limit, zero = (p.make.full(shape_of(x.type), number, f32) for number in (0.7, 0.0))
    above = p.make.emit("gt", [x, zero], TensorType(i1, shape_of(x.type)))
    far = p.make.emit("where", [above, p.n("subtract", tail, middle, swap=True), tail], x.type)
    is_near = p.make.emit("lt", [size, limit], TensorType(i1, shape_of(x.type)))
    return p.n("multiply", p.make.emit("where", [is_near, near, far], x.type), 0.5)


def test_gelu_through_the_normal_distribution() -> None:
    p = Formulas()
    x = p.argument(4, 8)
    assert names_after(p, p.b("multiply", x, normal_distribution(p, x))) == ["gelu"]


def test_another_distribution_is_no_gelu() -> None:
    p = Formulas()
    x = p.argument(4, 8)
    assert "gelu" not in names_after(p, p.b("multiply", x, normal_distribution(p, x, 2.5)))


def softplus(p: Formulas, x: SSAValue) -> SSAValue:
    """`jax.numpy.logaddexp(x, 0)`."""
    nan = p.make.emit("ne", [x, x], TensorType(i1, shape_of(x.type)))
    rest = p.u("log1p", p.u("exp", p.u("neg", p.u("abs", x))))
    return p.make.emit("where", [nan, x, p.b("add", p.u("relu", x), rest)], x.type)


def leaky(p: Formulas, x: SSAValue, name: str, bound: float = 0.0) -> SSAValue:
    above = p.make.emit(
        name, [x, p.make.full([4, 8], bound, f32)], TensorType(i1, shape_of(x.type))
    )
    return p.make.emit("where", [above, x, p.n("multiply", x, 0.1)], x.type)


ACTIVATIONS: dict[str, tuple[Callable[[Formulas, SSAValue], SSAValue], list[str]]] = {
    "mish": (lambda p, x: p.b("multiply", x, p.u("tanh", softplus(p, x))), ["mish"]),
    "leaky_relu": (lambda p, x: leaky(p, x, "ge"), ["leaky_relu"]),
    "leaky_relu, above only": (lambda p, x: leaky(p, x, "gt"), ["leaky_relu"]),
    "another bound": (lambda p, x: leaky(p, x, "ge", 1.0), ["ge", "multiply", "where"]),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    build, expected = ACTIVATIONS[name]
    p = Formulas()
    assert names_after(p, build(p, p.argument(4, 8))) == expected


def sorted_pair(p: Formulas, x: SSAValue, descending: bool) -> list[SSAValue]:
    types = [x.type, TensorType(i32, shape_of(x.type))]
    made = p.make.emit_op("sort", [x], types, dim=1, descending=descending, stable=True)
    return list(made.results)


@pytest.mark.parametrize("descending", [False, True])
def test_the_first_of_sorted_ones_are_selected(descending: bool) -> None:
    p = Formulas()
    values, places = sorted_pair(p, p.argument(4, 64), descending)
    parts = [p.make.slice(each, [0, 0], [4, 5]) for each in (values, places)]
    assert names_after(p, *parts) == ["topk"]


def test_what_is_sorted_and_reversed_is_sorted_the_other_way() -> None:
    p = Formulas()
    values, _ = sorted_pair(p, p.argument(4, 64), False)
    turned = p.make.emit("reverse", [values], values.type, dimensions=[1])
    assert names_after(p, p.make.slice(turned, [0, 0], [4, 5])) == ["topk"]


@pytest.mark.parametrize("part", [([0, 1], [4, 6]), ([0, 0], [3, 5])])
def test_other_parts_of_sorted_ones_stay(part: tuple[list[int], list[int]]) -> None:
    p = Formulas()
    values, _ = sorted_pair(p, p.argument(4, 64), False)
    assert names_after(p, p.make.slice(values, *part)) == ["sort", "slice_static"]


def test_sorted_ones_that_are_looked_at_otherwise_stay() -> None:
    p = Formulas()
    values, places = sorted_pair(p, p.argument(4, 64), False)
    part = p.make.slice(values, [0, 0], [4, 5])
    assert names_after(p, part, places) == ["sort", "slice_static"]


def test_a_convolution_through_a_deviation_has_other_weights() -> None:
    p = Formulas()
    make = p.make
    x = p.argument(1, 8, 8, 4)
    weight, variance = p.weight(4, 4, 3, 3), p.weight(1, 1, 1, 4)
    options = {"stride": [1, 1], "padding": [1, 1, 1, 1], "dilation": [1, 1], "groups": 1}
    image = make.emit("conv2d", [x, weight], TensorType(f32, [1, 8, 8, 4]), **options)
    deviation = p.u("sqrt", p.n("add", p.b("multiply", variance, variance), 0.5))
    result = p.b("div", image, deviation)
    assert "div" not in names_after(p, result)
