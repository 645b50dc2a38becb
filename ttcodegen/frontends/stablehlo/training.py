"""Steps of training and mixtures of experts, as tt-xla names them: composites `tenstorrent.*` and
custom calls `tt.*` that are one op of TTIR each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.frontends.stablehlo.conversion import Conversion, Results
from ttcodegen.frontends.stablehlo.reading.call_options import flag, integer, like_result, number
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp
from ttcodegen.ops.collectives.schedule import TensorParts

Operands = Sequence[SSAValue]

_ADAMW = ("lr", "beta1", "beta2", "beta1_pow", "beta2_pow", "epsilon", "weight_decay")
_MASKS = ("none", "causal", "arbitrary")
"""By their numbers in `mask_type`."""


def _made(
    conversion: Conversion, op: StableHLOOp, name: str, operands: Operands, count: int, **given: Any
) -> list[SSAValue]:
    """The op with all results of the call; `count` is how many operands it has, with optional
    ones."""
    if not count - 1 <= len(operands) <= count:
        raise ValueError(f"{len(operands)} operands do not fit {name}")
    padded = [*operands, *[None] * (count - len(operands))]
    types = [like_result(op, index) for index in range(len(op.results))]
    return list(conversion.builder.emit_op(name, padded, types, **given).results)


def adamw(
    conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
) -> Results:
    """Parameter, gradient, both moments and perhaps the greatest second one so far."""
    given: dict[str, Any] = {name: number(attributes, name) for name in _ADAMW}
    rounding = flag(attributes, "stochastic_rounding")
    return _made(conversion, op, "adamw", operands, 5, **given, stochastic_rounding=rounding)


def _mask_of(attributes: Mapping[str, Any], default: int) -> str:
    kind = integer(attributes, "mask_type", default)
    if kind is None or not 0 <= kind < len(_MASKS):
        raise ValueError(f"'mask_type' has to be from 0 to {len(_MASKS) - 1}, found {kind}")
    return _MASKS[kind]


def attention_forward(
    conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
) -> Results:
    """Query, key, value and perhaps a mask; with two results, what the gradient needs is kept."""
    return _made(
        conversion,
        op,
        "sdpa_fw",
        operands,
        4,
        mask_type=_mask_of(attributes, 1),
        dropout_probability=number(attributes, "dropout_probability") or 0.0,
        return_intermediates=len(op.results) == 2,
    )


def attention_backward(
    conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
) -> Results:
    """The gradient and the output of the forward pass, its operands, what it kept, and perhaps a
    mask."""
    return _made(
        conversion,
        op,
        "sdpa_bw",
        operands,
        7,
        mask_type=_mask_of(attributes, 2),
        dropout_probability=number(attributes, "dropout_probability") or 0.0,
    )


def dispatch(
    conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
) -> Results:
    """Tokens, their experts and the devices of these."""
    given = {name: integer(attributes, name) for name in ("num_devices", "cluster_axis")}
    return _made(conversion, op, "all_to_all_dispatch", operands, 3, **given)


def combine(
    conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
) -> Results:
    """Combines expert outputs by the token's experts and their devices.

    Outputs of the experts on the other mesh axis are added up.
    """
    names = ("num_devices", "cluster_axis", "num_experts_per_tok", "output_shard_dim")
    given = {name: integer(attributes, name) for name in names}
    made = _made(conversion, op, "all_to_all_combine", operands, 3, **given)
    devices, axis = given["num_devices"] or 1, given["cluster_axis"]
    owners = shape_of(op.operands[2].type)[-1]
    if devices == 1 or owners <= devices or axis not in (0, 1):
        return made
    parts = TensorParts(conversion.builder, conversion.mesh.shape)
    return [parts.reduce(value, "sum", 1 - axis) for value in made]


def remap(
    conversion: Conversion, op: StableHLOOp, operands: Operands, attributes: Mapping[str, Any]
) -> Results:
    """Scores, the devices of the experts and the experts of the tokens."""
    size = integer(attributes, "reduction_size", 32)
    return _made(conversion, op, "moe_expert_token_remap", operands, 3, reduction_size=size)
