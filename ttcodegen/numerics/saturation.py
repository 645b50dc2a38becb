"""Which calls end in a function that saturates."""

from __future__ import annotations

from collections.abc import Mapping

from ttcodegen.dialects.program_configs import ProgramConfig

SATURATING = frozenset({"tanh", "sigmoid", "erf", "hardsigmoid", "hardtanh", "softsign"})
"""Functions that bring any range into a small one, but errors near zero through as they are."""


def saturates(name: str, parameters: Mapping[str, object]) -> bool:
    """Whether a call, by its name without the dialect and its parameters, ends in such a function:
    its own, or the activation that it applies."""
    configs = [given for given in parameters.values() if isinstance(given, ProgramConfig)]
    fused = {config.activation.op_type for config in configs if config.activation is not None}
    return not SATURATING.isdisjoint({name, parameters.get("activation"), *fused})
