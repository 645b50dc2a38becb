"""Replaces ops by those that device kernels are made for, where the catalogue says how."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ttcodegen.dialects.datatypes import shape_of
from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.ops.definition import PrimitiveLowering, TTIRDefinition
from ttcodegen.transforms.rewriting import Replacement, Rewriter, functions, rewrite_each


def _has_no_elements(op: CatalogueOp) -> bool:
    return any(0 in shape_of(value.type) for value in (*op.operands, *op.results))


@dataclass(frozen=True)
class TTIRPrimitivesPass(ModulePass):
    """Leaves elementwise ops, reductions that keep their dimensions, products of matrices,
    embeddings, movements and constants; convolutions and pools as well, unless it is the last
    time that the pass runs."""

    name = "ttir-primitives"
    last: bool = False
    """Whether nothing but grouping comes after the pass."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            rewrite_each(function, self._replace, lambda op: self._rule(op) is not None)

    def _rule(self, op: CatalogueOp) -> PrimitiveLowering | None:
        definition = op.definition
        if not isinstance(definition, TTIRDefinition):
            return None
        if self.last and definition.program is not None and not _has_no_elements(op):
            return definition.program
        return definition.primitives

    def _replace(self, rewriter: Rewriter, op: CatalogueOp) -> Replacement | None:
        rule = self._rule(op)
        assert rule is not None
        return rule(rewriter, op)
