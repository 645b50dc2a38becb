"""Orthogonal polynomials, of a degree that is a number or a tensor."""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import Any

from ttcodegen.frontends.torch.decompositions.tracing import (
    Decomposition,
    Decompositions,
    Tensor,
    in_float32,
    torch,
)

_HIGHEST_DEGREE = 32
"""Of a recurrence whose degree is a tensor; beyond it the result is NaN."""
_HIGHEST_NUMBER = 128
"""Of a degree that is a number; torch's own limit for Hermite polynomials of float32."""

Next = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""The polynomial of degree k + 1, by k, x and those of degrees k and k - 1."""


def _recurrence(first: Callable[[Tensor], Tensor], following: Next, highest: int) -> Any:
    """A polynomial of degree n that starts with 1 and `first`."""

    def polynomial(x: Tensor, n: Any) -> Tensor:
        before, last = torch.ones_like(x), first(x)
        if not isinstance(n, torch.Tensor):
            degree = int(n)
            if degree > _HIGHEST_NUMBER:
                return torch.full_like(x, nan)
            for k in range(1, degree):
                before, last = last, following(k, x, last, before)
            return torch.zeros_like(x) if degree < 0 else (before if degree == 0 else last)
        n = torch.trunc(n)
        found = torch.where(n < 0, 0.0, torch.where(n == 0, before, last))
        for k in range(1, highest):
            before, last = last, following(k, x, last, before)
            found = torch.where(n == k + 1, last, found)
        return torch.where(n > highest, nan, found)

    return polynomial


def _chebyshev_step(_: int, x: Tensor, last: Tensor, before: Tensor) -> Tensor:
    return (x + x) * last - before


_FIRST: dict[str, Callable[[Tensor], Tensor]] = {
    "t": lambda x: x,
    "u": lambda x: x + x,
    "v": lambda x: x + x - 1,
    "w": lambda x: x + x + 1,
}
"""Of the four kinds of Chebyshev polynomials."""


def _by_angles(kind: str, x: Tensor, n: Tensor) -> Tensor:
    """A Chebyshev polynomial between -1 and 1, and its limits at the ends."""
    angle = torch.acos(x)
    if kind == "t":
        return torch.cos(n * angle)
    odd = torch.where(torch.remainder(n, 2) == 0, 1.0, -1.0)
    if kind == "u":
        found = torch.sin((n + 1) * angle) / torch.sin(angle)
        ends = (n + 1, odd * (n + 1))
    elif kind == "v":
        found = torch.cos((n + 0.5) * angle) / torch.cos(angle * 0.5)
        ends = (torch.ones_like(n), odd * (n + n + 1))
    else:
        found = torch.sin((n + 0.5) * angle) / torch.sin(angle * 0.5)
        ends = (n + n + 1, odd)
    return torch.where(x == 1, ends[0], torch.where(x == -1, ends[1], found))


def _chebyshev(kind: str) -> Decomposition:
    """By the recurrence for low degrees and outside of -1 to 1, else by angles."""
    recurrence = _recurrence(_FIRST[kind], _chebyshev_step, _HIGHEST_DEGREE)

    def polynomial(x: Any, n: Any) -> Tensor:
        x, n = _tensors(x, n)
        inside = x.abs() <= 1
        found = recurrence(x, n)
        degree = (
            torch.trunc(n) if isinstance(n, torch.Tensor) else torch.full_like(x, float(int(n)))
        )
        x, degree, inside = torch.broadcast_tensors(x, degree, inside)
        return torch.where(inside & (degree > 6), _by_angles(kind, x, degree), found)

    return polynomial


def _tensors(x: Any, n: Any) -> tuple[Tensor, Any]:
    if not isinstance(x, torch.Tensor):
        return torch.full_like(n, float(x)), n
    if isinstance(n, torch.Tensor):
        return tuple(torch.broadcast_tensors(x, n))
    return x, n


def _shifted(polynomial: Decomposition) -> Decomposition:
    def shifted(x: Any, n: Any) -> Tensor:
        return polynomial(x + x - 1, n)

    return shifted


def _of_any(polynomial: Any) -> Decomposition:
    def taken(x: Any, n: Any) -> Tensor:
        return polynomial(*_tensors(x, n))

    return taken


def _hermite_h(k: int, x: Tensor, last: Tensor, before: Tensor) -> Tensor:
    return (x + x) * last - (2 * k) * before


def _hermite_he(k: int, x: Tensor, last: Tensor, before: Tensor) -> Tensor:
    return x * last - k * before


def _laguerre(k: int, x: Tensor, last: Tensor, before: Tensor) -> Tensor:
    return ((2 * k + 1 - x) * last - k * before) / (k + 1)


def _legendre(k: int, x: Tensor, last: Tensor, before: Tensor) -> Tensor:
    return ((2 * k + 1) * x * last - k * before) / (k + 1)


_POLYNOMIALS: dict[str, Decomposition] = {
    **{f"chebyshev_polynomial_{kind}": _chebyshev(kind) for kind in _FIRST},
    **{f"shifted_chebyshev_polynomial_{kind}": _shifted(_chebyshev(kind)) for kind in _FIRST},
    "hermite_polynomial_h": _of_any(_recurrence(lambda x: x + x, _hermite_h, _HIGHEST_DEGREE)),
    "hermite_polynomial_he": _of_any(_recurrence(lambda x: x, _hermite_he, _HIGHEST_DEGREE)),
    "laguerre_polynomial_l": _of_any(_recurrence(lambda x: 1 - x, _laguerre, _HIGHEST_DEGREE)),
    "legendre_polynomial_p": _of_any(_recurrence(lambda x: x, _legendre, _HIGHEST_DEGREE)),
}

DECOMPOSITIONS: Decompositions = {
    f"special_{name}": in_float32(polynomial) for name, polynomial in _POLYNOMIALS.items()
}
