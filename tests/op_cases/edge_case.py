"""An op of TTIR on operands of several kinds, and what a framework makes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
Pool = str | Sequence[float]


@dataclass(frozen=True)
class Given:
    """An operand: its type, and what its elements are drawn from."""

    shape: tuple[int, ...]
    element: str
    pool: Pool = "all"


@dataclass(frozen=True)
class Case:
    """An op of TTIR on such operands, and its first result as PyTorch or numpy has it."""

    name: str
    operands: tuple[Given, ...]
    result: tuple[tuple[int, ...], str]
    meaning: Callable[..., Any]
    attributes: str = ""
    exact: bool = True
    others: tuple[str, ...] = ()
    """Types of further results."""
    in_place: bool = False
    """The result is the first operand, which the op overwrites."""


def in_torch(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of PyTorch on numpy's arrays, bf16 in float32."""

    def apply(*arrays: np.ndarray) -> np.ndarray:
        given = [
            torch.from_numpy(each if each.dtype.kind in "bi" else each.astype(np.float32))
            for each in arrays
        ]
        return function(*given).numpy()

    return apply
