"""Decompositions of ATen operations into other ATen operations, applied before the rules.

- `elementwise`: Decompositions of elementwise operations and views
- `gradients`: Decompositions of backward operations of layers
- `layers`: Decompositions of layers in forms, or with results, that rules do not cover
- `polynomials`: Orthogonal polynomials
- `selecting`: Data-dependent selection and random distributions
- `special`: Special functions by series and rational approximations of float32 precision
- `tracing`: Torch module and computation types shared by decompositions

They are written in torch, which traces them: types, shapes and scalars are those that torch has.
Needs torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ttcodegen.frontends.torch.decompositions import (
    elementwise,
    gradients,
    layers,
    polynomials,
    selecting,
    special,
)
from ttcodegen.frontends.torch.decompositions.tracing import Decomposition

DECOMPOSITIONS: dict[str, Decomposition] = {
    **elementwise.DECOMPOSITIONS,
    **layers.DECOMPOSITIONS,
    **gradients.DECOMPOSITIONS,
    **selecting.RANDOM_DECOMPOSITIONS,
    **selecting.DECOMPOSITIONS,
    **special.DECOMPOSITIONS,
    **polynomials.DECOMPOSITIONS,
}


def decomposition_of(name: str, overload: str) -> Decomposition | None:
    """Returns the decomposition of an operation, or None."""
    return DECOMPOSITIONS.get(f"{name}.{overload}") or DECOMPOSITIONS.get(name)


def replaces_rule(name: str, overload: str, arguments: Sequence[Any], used: set[int]) -> bool:
    """Returns whether an operation with a rule is decomposed nevertheless.

    Its overload, its arguments or the results in use decide.
    """
    if f"{name}.{overload}" in DECOMPOSITIONS:
        return True
    if name == "batch_norm":
        *_, mean, _, training, _, _, _ = arguments
        return bool(training) and mean is not None
    return name in layers.ONLY_FIRST_RESULT and bool(used - {0})
