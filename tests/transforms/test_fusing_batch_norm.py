"""Batch norms that frameworks spell out are one op again, with the values that they had."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.ir import SSAValue

from tests.transforms.programs import Formulas, Transformed, transformed
from ttcodegen.transforms.ttir.canonicalize import TTIRCanonicalizePass
from ttcodegen.transforms.ttir.fusing.rules import TTIRFusingPass

Formula = Callable[[Formulas, SSAValue, Callable[[], SSAValue]], SSAValue]
"""A batch norm of a value; each call of the function gives another weight of the channels."""


def deviation(p: Formulas, weight: SSAValue, root: str = "sqrt") -> SSAValue:
    return p.u(root, p.n("add", weight, 1e-3))


def by_division(p: Formulas, x: SSAValue, weight: Callable[[], SSAValue]) -> SSAValue:
    normalized = p.b("div", p.b("subtract", x, weight()), deviation(p, weight()))
    return p.b("add", p.b("multiply", normalized, weight()), weight())


def by_factor(p: Formulas, x: SSAValue, weight: Callable[[], SSAValue]) -> SSAValue:
    factor = p.b("multiply", deviation(p, weight(), "rsqrt"), weight())
    return p.b("add", weight(), p.b("multiply", factor, p.b("subtract", x, weight())))


def scaled_before(p: Formulas, x: SSAValue, weight: Callable[[], SSAValue]) -> SSAValue:
    scaled = p.b("multiply", weight(), p.b("subtract", x, weight()))
    return p.b("add", p.b("div", scaled, deviation(p, weight())), weight())


def by_quotient(p: Formulas, x: SSAValue, weight: Callable[[], SSAValue]) -> SSAValue:
    factor = p.b("div", weight(), deviation(p, weight()))
    return p.b("add", p.b("multiply", p.b("subtract", x, weight()), factor), weight())


def by_inverse(p: Formulas, x: SSAValue, weight: Callable[[], SSAValue]) -> SSAValue:
    inverse = p.u("reciprocal", deviation(p, weight()))
    product = p.b("multiply", p.b("subtract", x, weight()), inverse)
    return p.b("add", p.n("multiply", product, 0.5), weight())


def without_scale(p: Formulas, x: SSAValue, weight: Callable[[], SSAValue]) -> SSAValue:
    normalized = p.b("div", p.b("subtract", x, weight()), deviation(p, weight()))
    return p.b("add", normalized, weight())


FORMULAS: list[Formula] = [
    by_division, by_factor, scaled_before, by_quotient, by_inverse, without_scale,
]  # fmt: skip


def fused(p: Formulas, *results: SSAValue) -> Transformed:
    passes = TTIRCanonicalizePass(), TTIRFusingPass()
    return transformed(p.returns(*results), *passes, low=0.25, high=2.0)


@pytest.mark.parametrize(
    ("shape", "vector", "channel"),
    [
        ((2, 3, 5, 4), (4,), 3),
        ((2, 4, 5, 3), (1, 4, 1, 1), 1),
        ((6, 4), (1, 4), 1),
    ],
)
@pytest.mark.parametrize("formula", FORMULAS)
def test_a_spelled_batch_norm_is_one_op(
    formula: Formula, shape: tuple[int, ...], vector: tuple[int, ...], channel: int
) -> None:
    p = Formulas()
    result = fused(p, formula(p, p.argument(*shape), lambda: p.weight(*vector)))
    norm = result.op("batch_norm_inference")
    assert norm.parameter("dimension") == channel
    assert norm.parameter("epsilon") == pytest.approx(1e-3)
    assert result.names[-1] == "batch_norm_inference"
    assert "subtract" not in result.names


def test_statistics_that_are_no_weights_stay() -> None:
    p = Formulas()
    result = fused(p, by_division(p, p.argument(2, 3, 5, 4), lambda: p.argument(4)))
    assert "batch_norm_inference" not in result.names


def test_weights_along_different_dimensions_stay() -> None:
    p = Formulas()
    vectors = iter([(4, 1), (4, 1), (4,), (4, 1)])
    result = fused(p, by_division(p, p.argument(2, 4, 4), lambda: p.weight(*next(vectors))))
    assert "batch_norm_inference" not in result.names


def test_a_difference_that_is_used_elsewhere_stays() -> None:
    p = Formulas()
    difference = p.b("subtract", p.argument(2, 3, 5, 4), p.weight(4))
    normalized = p.b("div", difference, deviation(p, p.weight(4)))
    result = fused(p, p.b("add", normalized, p.weight(4)), difference)
    assert "batch_norm_inference" not in result.names
