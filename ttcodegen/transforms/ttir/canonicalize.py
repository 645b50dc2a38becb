"""Brings TTIR into the form that the later passes expect."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ttcodegen.ops.dialects import ttir_op_classes
from ttcodegen.transforms.functions.common_subexpressions import merge_common_subexpressions
from ttcodegen.transforms.rewriting import PatternSet, functions
from ttcodegen.transforms.ttir.arithmetic_rules import ARITHMETIC, folding_rules
from ttcodegen.transforms.ttir.empty_rules import empty_rules
from ttcodegen.transforms.ttir.movement_chains import CHAINS
from ttcodegen.transforms.ttir.movement_rules import MOVEMENT


@cache
def canonical_rules() -> PatternSet:
    """All simplifications; they need the catalogue to be complete."""
    ttir_op_classes()
    return PatternSet.union(empty_rules(), MOVEMENT, CHAINS, ARITHMETIC, folding_rules())


@dataclass(frozen=True)
class TTIRCanonicalizePass(ModulePass):
    """Simplifies constants, moves of elements and arithmetic, merges equal ops and drops those
    whose results are unused."""

    name = "ttir-canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rules = canonical_rules()
        for function in functions(op):
            rules.apply(function)
            if users := merge_common_subexpressions(function):
                rules.apply(function, users)
