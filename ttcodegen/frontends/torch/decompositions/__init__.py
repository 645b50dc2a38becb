"""Operations of ATen that are taken apart into others of ATen before rules see them.

They are written in torch, which traces them: types, shapes and scalars are those that torch has.
Needs torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ttcodegen.frontends.torch.decompositions import (
    layers,
    linear_algebra,
    polynomials,
    selecting,
    special,
)
from ttcodegen.frontends.torch.decompositions.tracing import Decomposition

DECOMPOSITIONS: dict[str, Decomposition] = {
    **layers.ELEMENTWISE_DECOMPOSITIONS,
    **layers.DECOMPOSITIONS,
    **linear_algebra.DECOMPOSITIONS,
    **selecting.RANDOM_DECOMPOSITIONS,
    **selecting.DECOMPOSITIONS,
    **linear_algebra.SPECTRAL_DECOMPOSITIONS,
    **special.DECOMPOSITIONS,
    **polynomials.DECOMPOSITIONS,
}


def decomposition_of(name: str, overload: str) -> Decomposition | None:
    """Returns the decomposition of an operation, or None if there is none here."""
    return DECOMPOSITIONS.get(f"{name}.{overload}") or DECOMPOSITIONS.get(name)


def replaces_rule(name: str, overload: str, arguments: Sequence[Any], used: set[int]) -> bool:
    """True if an operation is decomposed although its name has a rule: by its overload, its
    arguments, or the results that are used."""
    if f"{name}.{overload}" in DECOMPOSITIONS:
        return True
    if name == "batch_norm":
        *_, mean, _, training, _, _, _ = arguments
        return bool(training) and mean is not None
    return name in layers.ONLY_FIRST_RESULT and bool(used - {0})
