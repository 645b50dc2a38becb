"""All rules by the names of operations."""

from __future__ import annotations

from ttcodegen.frontends.torch import (
    creation,
    elementwise,
    indexing,
    layers,
    losses,
    movement,
    pooling,
    quantized,
    reductions,
    resizing,
    sampling,
)
from ttcodegen.frontends.torch.graph import Rule

RULES: dict[str, Rule] = {
    **elementwise.RULES,
    **reductions.RULES,
    **movement.RULES,
    **creation.RULES,
    **indexing.RULES,
    **layers.RULES,
    **pooling.RULES,
    **losses.RULES,
    **quantized.RULES,
    **resizing.RULES,
    **sampling.RULES,
}


def rule_of(name: str, overload: str) -> Rule | None:
    """The rule of an operation of ATen, None if there is none."""
    return RULES.get(f"{name}.{overload}") or RULES.get(name)
