"""Activations that calls of the library apply to what they compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.program_configs import PROGRAM_CONFIGS
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.elementwise.unary import gelu, sigmoid

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": gelu,
    "silu": lambda x: x * sigmoid(x),
    "sigmoid": sigmoid,
}
"""Those of products and convolutions, by the name of the unary op."""


def activation_name(attributes: Mapping[str, Any]) -> str | None:
    """The activation of a call: it names one, or its program configuration does."""
    name: str | None = attributes.get("activation")
    for key in PROGRAM_CONFIGS:
        config = attributes.get(key)
        if name is None and config is not None and config.activation is not None:
            name = config.activation.op_type
    return name


def activated(result: Array, attributes: Mapping[str, Any]) -> Array:
    """Applies the fused activation of a call to `result`."""
    name = activation_name(attributes)
    return result if name is None else ACTIVATIONS[name](result)


def verify_activation(op: CatalogueOp) -> None:
    """The activation is one that calls can apply."""
    name = activation_name(op.parameters())
    if name is not None and name not in ACTIVATIONS:
        there = ", ".join(ACTIVATIONS)
        raise VerifyException(
            f"{op.name}: there is no activation '{name}' of its results, only {there}"
        )
