"""Random numbers of other distributions, from those that are uniform between 0 and 1."""

from __future__ import annotations

from math import pi
from typing import Any

from ttcodegen.frontends.torch.decompositions.tracing import Decompositions, Tensor, torch

_LEAST = 2.0**-24
"""Positive number that replaces 0 under a logarithm."""


def _uniform(shape: Any) -> Tensor:
    return torch.rand(list(shape), dtype=torch.float32)


def _normal(shape: Any) -> Tensor:
    """By Box and Muller."""
    size = torch.sqrt(-2.0 * torch.log(_uniform(shape).clamp(min=_LEAST)))
    return size * torch.cos(2 * pi * _uniform(shape))


def _float_dtype(dtype: Any) -> Any:
    return dtype or torch.get_default_dtype()


def _randn(size: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    return _normal(size).to(_float_dtype(dtype))


def _rand_like(x: Tensor, *, dtype: Any = None, **_: Any) -> Tensor:
    return _uniform(x.shape).to(dtype or x.dtype)


def _randn_like(x: Tensor, *, dtype: Any = None, **_: Any) -> Tensor:
    return _normal(x.shape).to(dtype or x.dtype)


def _integers(shape: Any, low: int, high: int, dtype: Any) -> Tensor:
    """Integers from `low` to below `high`; float32 distinguishes at most 2^24 of them."""
    drawn = torch.floor(_uniform(shape) * (high - low)).clamp(max=high - low - 1)
    return (drawn.to(torch.int64) + low).to(dtype)


def _randint(high: int, size: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    return _integers(size, 0, high, dtype or torch.int64)


def _randint_from(low: int, high: int, size: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    return _integers(size, low, high, dtype or torch.int64)


def _randint_like(x: Tensor, high: int, *, dtype: Any = None, **_: Any) -> Tensor:
    return _integers(x.shape, 0, high, dtype or x.dtype)


def _randint_like_from(x: Tensor, low: int, high: int, *, dtype: Any = None, **_: Any) -> Tensor:
    return _integers(x.shape, low, high, dtype or x.dtype)


def _randperm(n: int, *, dtype: Any = None, **_: Any) -> Tensor:
    return torch.argsort(_uniform([n])).to(dtype or torch.int64)


def _bernoulli(x: Tensor, p: Any = None, **_: Any) -> Tensor:
    """1 with the probability that each element, or a number, is."""
    return (_uniform(x.shape) < (x if p is None else p)).to(x.dtype)


def _uniform_between(x: Tensor, low: float = 0.0, high: float = 1.0, **_: Any) -> Tensor:
    return (_uniform(x.shape) * (high - low) + low).to(x.dtype)


def _normal_of(x: Tensor, mean: float = 0.0, std: float = 1.0, **_: Any) -> Tensor:
    return (_normal(x.shape) * std + mean).to(x.dtype)


def _normal_with(mean: Any, std: Any = 1.0, size: Any = None, **_: Any) -> Tensor:
    """Of a mean and a deviation, each a number or a tensor."""
    tensors = [each for each in (mean, std) if isinstance(each, torch.Tensor)]
    shape = size if size is not None else torch.broadcast_shapes(*(t.shape for t in tensors))
    dtype = tensors[0].dtype if tensors else torch.get_default_dtype()
    return (_normal(shape) * std + mean).to(dtype)


def _exponential(x: Tensor, rate: float = 1.0, **_: Any) -> Tensor:
    return (-torch.log(_uniform(x.shape).clamp(min=_LEAST)) / rate).to(x.dtype)


def _multinomial(p: Tensor, count: int, replacement: bool = False, **_: Any) -> Tensor:
    """Places that are drawn by weights: where an exponential race of all ends first."""
    if replacement:
        weights = p.to(torch.float32).unsqueeze(-2).expand([*p.shape[:-1], count, p.shape[-1]])
        return _races(weights).argmin(-1)
    return torch.topk(_races(p.to(torch.float32)), count, largest=False).indices


def _races(weights: Tensor) -> Tensor:
    times = -torch.log(_uniform(weights.shape).clamp(min=_LEAST))
    return torch.where(weights > 0, times / torch.where(weights > 0, weights, 1.0), float("inf"))


def _native_dropout(x: Tensor, p: float, train: bool | None = None) -> tuple[Tensor, Tensor]:
    if train is False or p == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    kept = _uniform(x.shape) >= p
    scaled = x * (0.0 if p == 1 else 1 / (1 - p))
    return torch.where(kept, scaled, 0.0).to(x.dtype), kept


DECOMPOSITIONS: Decompositions = {
    "randn": _randn,
    "rand_like": _rand_like,
    "randn_like": _randn_like,
    "randint": _randint,
    "randint.low": _randint_from,
    "randint_like": _randint_like,
    "randint_like.low_dtype": _randint_like_from,
    "randperm": _randperm,
    "bernoulli": _bernoulli,
    "uniform": _uniform_between,
    "normal_functional": _normal_of,
    "normal": _normal_with,
    "exponential": _exponential,
    "multinomial": _multinomial,
    "native_dropout": _native_dropout,
}
