"""Decomposition into other TTIR ops and into those of device kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.functions import is_cpu_function
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.core.definition import PrimitiveLowering, TTIRDefinition, works_between_chips
from ttcodegen.transforms.rewriting import Replacement, Rewriter, functions, rewrite_each

# Replaces the ops that other TTIR ops can express.


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


# Replaces ops by those that device kernels are made for, where the catalogue says how.

_RuleOf = Callable[[CatalogueOp], PrimitiveLowering | None]


def _has_no_elements(op: CatalogueOp) -> bool:
    return any(0 in shape_of(value.type) for value in (*op.operands, *op.results))


@dataclass(frozen=True)
class TTIRPrimitivesPass(ModulePass):
    """Leaves elementwise ops, reductions that keep their dimensions, products of matrices,
    embeddings, movements and constants; convolutions and pools as well, unless it is the last
    time that the pass runs."""

    name = "ttir-primitives"
    last: bool = False
    """True if nothing but grouping comes after the pass."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            rule_of = _on_cpu
            if not is_cpu_function(function):
                rule_of = partial(_on_device, _of_program if self.last else _of_others)
            rewrite_each(function, partial(_replace, rule_of), partial(_has_rule, rule_of))


def _has_rule(rule_of: _RuleOf, op: CatalogueOp) -> bool:
    return rule_of(op) is not None


def _replace(rule_of: _RuleOf, rewriter: Rewriter, op: CatalogueOp) -> Replacement | None:
    rule = rule_of(op)
    assert rule is not None
    return rule(rewriter, op)


def _on_device(rule_of: _RuleOf, op: CatalogueOp) -> PrimitiveLowering | None:
    """None for what a program of the device computes as it is."""
    definition = op.definition
    assert isinstance(definition, TTIRDefinition)
    return None if definition.stays is not None and definition.stays(op) else rule_of(op)


def _on_cpu(op: CatalogueOp) -> PrimitiveLowering | None:
    """None for what joins chips: the CPU does it in one step."""
    return None if works_between_chips(op) else _of_others(op)


def _of_others(op: CatalogueOp) -> PrimitiveLowering | None:
    """Returns the lowering of an op to other ops, or None."""
    definition = op.definition
    return definition.primitives if isinstance(definition, TTIRDefinition) else None


def _of_program(op: CatalogueOp) -> PrimitiveLowering | None:
    """As `_of_others`, with what only programs of the device compute."""
    definition = op.definition
    if not isinstance(definition, TTIRDefinition):
        return None
    if definition.program is not None and not _has_no_elements(op):
        return definition.program
    return definition.primitives
