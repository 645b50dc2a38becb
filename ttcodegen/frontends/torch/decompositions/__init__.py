"""Operations of ATen that are taken apart into others of ATen before rules see them.

They are written in torch, which traces them: types, shapes and scalars are those that torch has.
Needs torch.
"""

from __future__ import annotations

from ttcodegen.frontends.torch.decompositions import (
    elementwise,
    linear_algebra,
    polynomials,
    selecting,
    special,
    spectra,
)
from ttcodegen.frontends.torch.decompositions.tracing import Decomposition

DECOMPOSITIONS: dict[str, Decomposition] = {
    **elementwise.DECOMPOSITIONS,
    **linear_algebra.DECOMPOSITIONS,
    **selecting.DECOMPOSITIONS,
    **spectra.DECOMPOSITIONS,
    **special.DECOMPOSITIONS,
    **polynomials.DECOMPOSITIONS,
}


def decomposition_of(name: str, overload: str) -> Decomposition | None:
    """How an operation is taken apart, None if it is not here."""
    return DECOMPOSITIONS.get(f"{name}.{overload}") or DECOMPOSITIONS.get(name)


def replaces_rule(name: str, overload: str) -> bool:
    """Whether an overload is taken apart although its name has a rule."""
    return f"{name}.{overload}" in DECOMPOSITIONS
