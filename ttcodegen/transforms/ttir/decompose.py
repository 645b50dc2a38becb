"""Replaces the ops that other TTIR ops can express."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.core.definition import TTIRDefinition
from ttcodegen.transforms.rewriting import Replacement, Rewriter, functions, rewrite_each


def _is_composite(op: CatalogueOp) -> bool:
    definition = op.definition
    return isinstance(definition, TTIRDefinition) and definition.decompose is not None


def _decompose(rewriter: Rewriter, op: CatalogueOp) -> Replacement | None:
    definition = op.definition
    assert isinstance(definition, TTIRDefinition)
    assert definition.decompose is not None
    return definition.decompose(rewriter, op)


@dataclass(frozen=True)
class TTIRDecomposePass(ModulePass):
    """Applies the decompositions of the catalogue until no op has one."""

    name = "ttir-decompose"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            rewrite_each(function, _decompose, _is_composite)
