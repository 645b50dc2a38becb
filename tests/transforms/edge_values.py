"""Inputs from the edges of their types, and what a rewrite must keep for them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from ttcodegen.dialects.core.datatypes import element_of, numpy_name, shape_of
from ttcodegen.dialects.ttcore.dialect import ArgumentType
from ttcodegen.transforms.const_eval import rounded
from ttcodegen.transforms.ttnn.layout import argument_type

_FINITE = (0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -3.0, 6.0, 2.0)
_SUBNORMAL = (1e-40, -1e-40)
_INFINITE = (np.inf, -np.inf)

POOLS: dict[str, tuple[float, ...]] = {
    "finite": _FINITE,
    "subnormal": (*_FINITE, *_SUBNORMAL),
    "infinite": (*_FINITE, *_INFINITE),
    "minus infinity": (*_FINITE, -np.inf, -np.inf, -np.inf),
    "not a number": (*_FINITE, np.nan),
    "all": (*_FINITE, *_SUBNORMAL, *_INFINITE, np.nan),
    "far": (*_FINITE, 30.0, -30.0, 88.0, -88.0, 120.0, -120.0),
    "far and infinite": (*_INFINITE, 30.0, -30.0, 88.0, -88.0, 120.0, -120.0),
}
"""Floats to draw from; ties are frequent among so few numbers."""


def edge_inputs(function: FuncOp, seeds: int = 4) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Inputs of a function, each with the name of its pool: elements of it at random, or a few
    among ordinary numbers; integers from the ends of their types."""
    types = list(function.function_type.inputs)
    kinds = [argument_type(function, index) for index in range(len(types))]
    for name, pool in POOLS.items():
        for seed in range(seeds):
            generator = np.random.default_rng(seed)
            # Weights are finite: rules that compute with them before the program runs rely on it.
            pools = [_FINITE if kind == ArgumentType.PARAMETER else pool for kind in kinds]
            yield (
                name,
                [
                    _drawn(generator, type_, each, sparse=seed % 2 == 1)
                    for type_, each in zip(types, pools, strict=True)
                ],
            )


def _drawn(
    generator: np.random.Generator, type_: Attribute, pool: tuple[float, ...], *, sparse: bool
) -> np.ndarray:
    shape, dtype = shape_of(type_), numpy_name(element_of(type_))
    assert dtype is not None
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if "int" in dtype:
        limits = np.iinfo(dtype)
        return generator.choice(np.array([0, 1, 2, limits.max, limits.min], dtype), shape)
    drawn = generator.choice(np.array(pool, np.float32), shape)
    if sparse:
        # Rows of which most are ordinary: what is not a number elsewhere says nothing of these.
        ordinary = generator.uniform(-2, 2, shape).astype(np.float32)
        drawn = np.where(generator.random(shape) < 0.1, drawn, ordinary)
    return rounded(drawn.astype(np.float32), dtype) if dtype != "float64" else drawn.astype(dtype)


def difference(
    expected: np.ndarray, found: np.ndarray, tolerance: float, *, signs: bool
) -> str | None:
    """Kind of the first forbidden difference that a rewrite made, None if none.

    Args:
        expected: the result before the rewrite.
        found: the one after it.
        tolerance: what finite numbers may be off, in parts of the largest one.
        signs: whether zeros have to have the same sign.
    """
    assert expected.shape == found.shape
    if expected.dtype.kind in "biu":
        return None if np.array_equal(expected, found) else "integers"
    for kind, is_kind in (("NaN", np.isnan), ("+inf", np.isposinf), ("-inf", np.isneginf)):
        if (is_kind(expected) != is_kind(found)).any():
            return kind
    finite = np.isfinite(expected)
    first, second = expected[finite].astype(np.float64), found[finite].astype(np.float64)
    zeros = (first == 0) & (second == 0)
    if signs and (np.signbit(first) != np.signbit(second))[zeros].any():
        return "sign of zero"
    limit = tolerance * max(float(np.abs(first).max(initial=0.0)), 1.0)
    return "numbers" if (np.abs(first - second) > limit).any() else None
