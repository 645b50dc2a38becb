"""Puts ops together that the library has one op for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ttcodegen.transforms.functions import merge_common_subexpressions
from ttcodegen.transforms.rewriting import PatternSet, functions
from ttcodegen.transforms.ttir.canonicalize import canonical_rules
from ttcodegen.transforms.ttir.fusing.activations import ACTIVATIONS
from ttcodegen.transforms.ttir.fusing.attention import ATTENTION
from ttcodegen.transforms.ttir.fusing.decoding import DECODING
from ttcodegen.transforms.ttir.fusing.error_functions import ERROR_FUNCTIONS
from ttcodegen.transforms.ttir.fusing.grouped_attention import GROUPED_ATTENTION
from ttcodegen.transforms.ttir.fusing.heads import HEADS, REPEATED, ROTATIONS, SPLITS
from ttcodegen.transforms.ttir.fusing.lookups import LOOKUPS, SELECTIONS
from ttcodegen.transforms.ttir.fusing.matmuls import BATCH_NORMS, PRODUCTS
from ttcodegen.transforms.ttir.fusing.normalizations import NORMALIZATIONS
from ttcodegen.transforms.ttir.movement_passes import broadcast_rules


@cache
def fusing_rules() -> PatternSet:
    """The fusing rules, with the simplifications between them that they wait for."""
    return PatternSet.union(
        canonical_rules(), broadcast_rules(), NORMALIZATIONS, BATCH_NORMS, ACTIVATIONS, LOOKUPS,
        PRODUCTS, REPEATED, ATTENTION, GROUPED_ATTENTION, DECODING, ROTATIONS, SELECTIONS,
        HEADS, ERROR_FUNCTIONS,
    )  # fmt: skip


@dataclass(frozen=True)
class TTIRFusingPass(ModulePass):
    """Recognises biases, padding, activations, norms, lookups and attention that were spelled out.

    Where others use an intermediate value, the ops stay as they are.
    """

    name = "ttir-fusing"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rules = fusing_rules()
        for function in functions(op):
            rules.apply(function)
            SPLITS.apply(function)
            if users := merge_common_subexpressions(function):
                rules.apply(function, users)
