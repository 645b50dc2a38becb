"""Torch module and computation types shared by decompositions."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

torch: Any = importlib.import_module("torch")

Tensor = Any
Decomposition = Callable[..., Any]
"""Function from the arguments of an ATen operation to its results by other operations."""
Decompositions = Mapping[str, Decomposition]
"""Decompositions by operation name (`fmax`), or by overload (`median.dim`)."""


def computed(tensor: Tensor) -> Tensor:
    """Converts to torch's computation type: float32 for integers and short floats."""
    return tensor if tensor.dtype == torch.float64 else tensor.to(torch.float32)


def float_dtype(*tensors: Tensor) -> Any:
    """Result type of a float function: the promoted type of the operands, or the default float."""
    found = tensors[0].dtype
    for tensor in tensors[1:]:
        found = torch.promote_types(found, tensor.dtype)
    return found if found.is_floating_point else torch.get_default_dtype()


def in_float32(function: Decomposition) -> Decomposition:
    """Decorates a decomposition to compute in float32 and convert the result back."""

    @wraps(function)
    def decomposition(*arguments: Any, **named: Any) -> Tensor:
        tensors = [each for each in arguments if isinstance(each, torch.Tensor)]
        dtype = float_dtype(*([t for t in tensors if t.dim()] or tensors))
        given = [computed(a) if isinstance(a, torch.Tensor) else a for a in arguments]
        return function(*given, **named).to(dtype)

    return decomposition


def horner(coefficients: Sequence[float], x: Tensor) -> Tensor:
    """Evaluates a polynomial by Horner's rule; highest power first."""
    total = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        total = total * x + coefficient
    return total


def chebyshev(coefficients: Sequence[float], y: Tensor) -> Tensor:
    """Chebyshev series in y / 2 by Clenshaw's recurrence; highest degree first."""
    before = torch.zeros_like(y)
    last, total = before, torch.full_like(y, coefficients[0])
    for coefficient in coefficients[1:]:
        before, last = last, total
        total = y * last - before + coefficient
    return (total - before) * 0.5


def axis_of(tensor: Tensor, dim: int) -> int:
    """Normalizes a dimension index; a scalar has one dimension."""
    return dim % max(tensor.dim(), 1)


def widened(tensor: Tensor) -> Tensor:
    """Reshapes a scalar to one element; other tensors unchanged."""
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
