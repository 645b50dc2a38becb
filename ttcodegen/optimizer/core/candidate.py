"""One way to make a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ttcodegen.dialects.ttnn.placement import TensorPlacement


@dataclass(frozen=True)
class Way:
    """One way to make a call."""

    operands: tuple[TensorPlacement, ...]
    results: tuple[TensorPlacement, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Changes of the call's attributes."""


def interleaved(placement: TensorPlacement, buffer: str) -> TensorPlacement:
    """The same tensor, dealt out to all banks."""
    return placement.with_(buffer_type=buffer, memory_layout="interleaved", shards=None)
