"""Rules for tensors without elements: nothing has to be computed for them, or from them.

The library refuses such tensors in most of its ops; it makes them all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.core.definition import TTIR, TTIRDefinition
from ttcodegen.transforms.rewriting import PatternSet, Replacement, Rewriter


def _is_empty(value: SSAValue) -> bool:
    return 0 in shape_of(value.type)


def _nothing(rewriter: Rewriter, op: CatalogueOp, number: float) -> SSAValue:
    """A result that has no element of an operand: a number, and the bias of a linear layer."""
    result = rewriter.full(op.result_shape, number, op.result_type.element_type)
    named = {spec.name for spec in op.definition.operands}
    bias = op.optional_operand("bias") if "bias" in named else None
    if bias is None:
        return result
    bias = rewriter.typecast(bias, op.result_type.element_type)
    return rewriter.emit("add", [result, bias], op.result_type)


def _rest(rewriter: Rewriter, op: CatalogueOp) -> SSAValue:
    """The parts that have elements."""
    rank = len(op.result_shape)
    parts = [value for value in op.operands if not _is_empty(value)]
    return rewriter.concat(parts, op.parameter("dim") % rank)


def _padding(rewriter: Rewriter, op: CatalogueOp) -> SSAValue:
    return _nothing(rewriter, op, op.parameter("value"))


_MOVING: Mapping[str, Callable[[Rewriter, CatalogueOp], SSAValue]] = {
    "concat": _rest,
    "pad": _padding,
}
"""Rewrites of data movement ops whose operands are partly empty, by op name."""


def _without_elements(rewriter: Rewriter, op: CatalogueOp) -> Replacement | None:
    if op.results and all([_is_empty(result) for result in op.results]):
        return [
            rewriter.full(shape_of(result.type), 0, element_of(result.type))
            for result in op.results
        ]
    if len(op.results) != 1 or not any(map(_is_empty, op.operands)):
        return None
    if (rule := _MOVING.get(op.definition.short_name)) is not None:
        return rule(rewriter, op)
    number = TTIR[op.definition.short_name].of_nothing
    return None if number is None else _nothing(rewriter, op, number)


def _may_go(definition: TTIRDefinition) -> bool:
    """True if nothing is lost with the op."""
    return (
        definition.refusal is None and definition.in_place is None and len(definition.operands) > 0
    )


def empty_rules() -> PatternSet:
    """The rules, for all ops of the catalogue."""
    rules = PatternSet()
    rules.on(*(definition.name for definition in TTIR.values() if _may_go(definition)))(
        _without_elements
    )
    return rules
