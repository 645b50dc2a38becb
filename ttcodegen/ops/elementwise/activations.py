"""Activation functions with parameters, and activations fused into calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.operations.attribute_kinds import NUMBER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.program_configs import PROGRAM_CONFIGS
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.calls import (
    attribute_,
    cpp_call,
    cpp_text,
    operand_,
)
from ttcodegen.ops.core.definition import (
    Call,
    OperandSpec,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    register,
)
from ttcodegen.ops.core.dimensions import of_elements
from ttcodegen.ops.core.lowering import (
    cpu_call,
    tile_function_with,
)
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.elementwise.registration import (
    UNARY_HEADER,
    same_op,
    verify_broadcast,
)
from ttcodegen.ops.elementwise.unary import FLOATS, gelu, of_floats, sigmoid


def _leaky_relu(x: Array, parameter: float) -> Array:
    return np.where(x > 0, x, x * np.float32(parameter))


def _elu(x: Array, alpha: float) -> Array:
    return np.where(x > 0, x, np.float32(alpha) * np.expm1(np.minimum(x, 0)))


def _selu(x: Array, scale: float, alpha: float) -> Array:
    return np.float32(scale) * _elu(x, alpha)


def _register_with_numbers(
    name: str, function: Callable[..., Array], defaults: dict[str, float]
) -> None:
    """Registers an op with scalar parameters, in the order of the library's arguments."""
    attributes = tuple(attribute(key, NUMBER, default) for key, default in defaults.items())

    def meaning(call: Call) -> Array:
        numbers = [call[key] for key in defaults]
        return of_floats(lambda x: function(x, *numbers))(call.array("input"))

    register(
        TTIRDefinition(
            f"ttir.{name}",
            (operand("input"),),
            attributes,
            verify=verify_broadcast,
            numpy=meaning,
            lower=same_op(name, *defaults),
            tile=tile_function_with(
                f"{name}_tile", lambda op: tuple(op.parameter(key) for key in defaults)
            ),
            cpu=cpu_call(
                "elementwise",
                lambda op: {key: float(op.parameter(key)) for key in defaults},
            ),
            counts=True,
            dimensions=of_elements,
        )
    )
    numbers = (attribute_(key, lambda value: cpp_text(float(value))) for key in defaults)
    register(
        TTNNDefinition(
            f"ttnn.{name}",
            (OperandSpec("input", data_types=FLOATS),),
            attributes,
            verify=verify_broadcast,
            numpy=meaning,
            cpp=cpp_call(f"ttnn::{name}", UNARY_HEADER, operand_("input"), *numbers),
            traits=Trait.ACTIVATES,
        )
    )


_register_with_numbers("leaky_relu", _leaky_relu, {"parameter": 0.01})
_register_with_numbers("elu", _elu, {"alpha": 1.0})
_register_with_numbers("selu", _selu, {"scale": 1.0507009873390197, "alpha": 1.6732635498046875})


# Activations that ttnn calls apply to their results.

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": gelu,
    "silu": lambda x: x * sigmoid(x),
    "sigmoid": sigmoid,
}
"""Fusable activations of matmuls, convolutions and sums, by unary op name."""

ACTIVATION_PARAMETERS = {"gelu": (0.0,)}
"""Parameters that select the exact form of an activation."""


def activation_name(attributes: Mapping[str, Any]) -> str | None:
    """Returns the fused activation of a call, from its attribute or program config."""
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


def activated_operand(operand: Array, name: str | None) -> Array:
    """Applies the named activation, if any, to an operand of a call."""
    return operand if name is None else ACTIVATIONS[name](operand)


def verify_activation(op: CatalogueOp) -> None:
    """Activations are ones that calls can fuse."""
    parameters = op.parameters()
    operands = (parameters.get(f"{side}_activation") for side in ("lhs", "rhs"))
    for name in (activation_name(parameters), *operands):
        if name is not None and name not in ACTIVATIONS:
            there = ", ".join(ACTIVATIONS)
            raise VerifyException(
                f"{op.name}: there is no activation '{name}' that it applies, only {there}"
            )
