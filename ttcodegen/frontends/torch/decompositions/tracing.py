"""Torch module and computation types shared by decompositions."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

torch: Any = importlib.import_module("torch")

Tensor = Any
Decomposition = Callable[..., Any]
"""Takes the arguments of an operation of ATen and gives its results by other operations."""
Decompositions = Mapping[str, Decomposition]
"""By the names of operations, for all their overloads (`fmax`) or for one (`median.dim`)."""


def computed(tensor: Tensor) -> Tensor:
    """`tensor` in the type that torch computes with: float32 for integers and short floats."""
    return tensor if tensor.dtype == torch.float64 else tensor.to(torch.float32)


def float_dtype(*tensors: Tensor) -> Any:
    """The type of the result of a function of floats: that of the operands, or float32."""
    found = tensors[0].dtype
    for tensor in tensors[1:]:
        found = torch.promote_types(found, tensor.dtype)
    return found if found.is_floating_point else torch.get_default_dtype()


def in_float32(function: Decomposition) -> Decomposition:
    """A function of tensors that is computed in float32, and its result converted back."""

    @wraps(function)
    def decomposition(*arguments: Any, **named: Any) -> Tensor:
        tensors = [each for each in arguments if isinstance(each, torch.Tensor)]
        dtype = float_dtype(*([t for t in tensors if t.dim()] or tensors))
        given = [computed(a) if isinstance(a, torch.Tensor) else a for a in arguments]
        return function(*given, **named).to(dtype)

    return decomposition


def horner(coefficients: Sequence[float], x: Tensor) -> Tensor:
    """A polynomial, the coefficient of the highest power first."""
    total = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        total = total * x + coefficient
    return total


def chebyshev(coefficients: Sequence[float], y: Tensor) -> Tensor:
    """A series of Chebyshev polynomials of y / 2, the highest first, by Clenshaw's recurrence."""
    before = torch.zeros_like(y)
    last, total = before, torch.full_like(y, coefficients[0])
    for coefficient in coefficients[1:]:
        before, last = last, total
        total = y * last - before + coefficient
    return (total - before) * 0.5


def axis_of(tensor: Tensor, dim: int) -> int:
    """A dimension counted from the start; those of a scalar count as one."""
    return dim % max(tensor.dim(), 1)


def widened(tensor: Tensor) -> Tensor:
    """A scalar as a tensor of one element, others as they are."""
    return tensor.reshape(1) if tensor.dim() == 0 else tensor


__all__ = [
    "Decomposition",
    "Decompositions",
    "Tensor",
    "axis_of",
    "chebyshev",
    "computed",
    "float_dtype",
    "horner",
    "in_float32",
    "torch",
    "widened",
]
