"""Activations that only change what a product or a convolution gives become part of that call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ttcodegen.dialects.operations.attribute_kinds import STRING
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.program_configs import Conv2dConfig, FusedActivation, config_attribute
from ttcodegen.ops.core.definition import has_trait
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.elementwise.unary import ACTIVATIONS
from ttcodegen.optimizer.overrides.overrides import FunctionOverrides, overrides_of

PARAMETERS = {"gelu": (0.0,)}
"""Parameters that select the exact form of an activation."""


@dataclass(frozen=True)
class FuseActivations(ModulePass):
    """`relu`, `gelu`, `silu` and `sigmoid` of the result of a call without other uses."""

    name = "ttnn-fuse-activations"

    overrides: str = ""
    """The text of a file of overrides: some say that a call is to stay apart."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if isinstance(function, FuncOp):
                given = overrides_of(self.overrides, function)
                for inner in list(function.walk()):
                    if isinstance(inner, CatalogueOp):
                        _fuse(inner, given)


def _fuse(op: CatalogueOp, given: FunctionOverrides) -> None:
    name = op.definition.short_name
    if name not in ACTIVATIONS or len(op.operands) != 1:
        return
    value = op.operands[0]
    made = value.owner
    if not isinstance(made, CatalogueOp) or len(list(value.uses)) != 1:
        return
    if given.keeps_apart(op, made):
        return
    if value.type != op.results[0].type or not _take(made, name):
        return
    value.name_hint = op.results[0].name_hint or value.name_hint
    Rewriter.replace_op(op, [], [value])


def _take(op: CatalogueOp, name: str) -> bool:
    """True if a call can apply the activation, which it then does."""
    kind = op.definition.short_name
    activation = FusedActivation(name, PARAMETERS.get(name, ()))
    if kind == "conv2d":
        config = cast("Conv2dConfig", op.parameter("conv2d_config") or Conv2dConfig())
        if config.fused_activation is not None:
            return False
        fused = replace(config, fused_activation=activation)
        op.properties["conv2d_config"] = config_attribute(fused)
        return True
    if has_trait(op, Trait.MATRIX_PRODUCT) and op.parameter("activation") is None:
        if op.parameter("matmul_program_config") is not None:
            return False
        op.properties["activation"] = STRING.encode(name)
        return True
    return False
