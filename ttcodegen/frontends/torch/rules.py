"""All rules by the names of operations."""

from __future__ import annotations

from ttcodegen.frontends.torch import elementwise, images, indexing, layers, movement, reductions
from ttcodegen.frontends.torch.graph import Rule

RULES: dict[str, Rule] = {
    **elementwise.RULES,
    **reductions.RULES,
    **movement.RULES,
    **movement.CREATION_RULES,
    **indexing.RULES,
    **layers.RULES,
    **images.POOLING_RULES,
    **reductions.LOSS_RULES,
    **elementwise.QUANTIZED_RULES,
    **images.RESIZING_RULES,
    **images.SAMPLING_RULES,
}


def rule_of(name: str, overload: str) -> Rule | None:
    """The rule of an operation of ATen, None if there is none."""
    return RULES.get(f"{name}.{overload}") or RULES.get(name)
