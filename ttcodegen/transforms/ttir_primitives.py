"""Replaces ops by those that device kernels are made for, where the catalogue says how."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.ops.definition import TTIRDefinition
from ttcodegen.transforms.rewriting import Replacement, Rewriter, functions, rewrite_each


def _has_primitives(op: CatalogueOp) -> bool:
    definition = op.definition
    return isinstance(definition, TTIRDefinition) and definition.primitives is not None


def _replace(rewriter: Rewriter, op: CatalogueOp) -> Replacement | None:
    definition = op.definition
    assert isinstance(definition, TTIRDefinition)
    assert definition.primitives is not None
    return definition.primitives(rewriter, op)


@dataclass(frozen=True)
class TTIRPrimitivesPass(ModulePass):
    """Leaves elementwise ops, reductions that keep their dimensions, products of matrices,
    embeddings, movements and constants."""

    name = "ttir-primitives"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            rewrite_each(function, _replace, _has_primitives)
