"""Table of all rules, by operation name."""

from __future__ import annotations

from ttcodegen.frontends.torch import (
    elementwise,
    images,
    indexing,
    layers,
    linear_algebra,
    movement,
    quantization,
    reductions,
)
from ttcodegen.frontends.torch.graph import Rule

RULES: dict[str, Rule] = {
    **elementwise.RULES,
    **reductions.RULES,
    **movement.RULES,
    **movement.CREATION_RULES,
    **indexing.RULES,
    **layers.RULES,
    **linear_algebra.RULES,
    **images.POOLING_RULES,
    **reductions.LOSS_RULES,
    **quantization.RULES,
    **images.RESIZING_RULES,
    **images.SAMPLING_RULES,
}


def rule_of(name: str, overload: str) -> Rule | None:
    """Returns the rule of an ATen operation, None if there is none."""
    return RULES.get(f"{name}.{overload}") or RULES.get(name)
