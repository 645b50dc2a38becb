"""Rules for tensors without elements: nothing has to be computed for them, or from them.

The library refuses such tensors in most of its ops; it makes them all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import nan

from xdsl.ir import SSAValue

from ttcodegen.dialects.datatypes import element_of, shape_of
from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.ops.definition import TTIR, TTIRDefinition
from ttcodegen.transforms.rewriting import PatternSet, Replacement, Rewriter


def _is_empty(value: SSAValue) -> bool:
    return 0 in shape_of(value.type)


def _full(number: float) -> Callable[[Rewriter, CatalogueOp], SSAValue]:
    def rule(rewriter: Rewriter, op: CatalogueOp) -> SSAValue:
        return rewriter.full(op.result_shape, number, op.result_type.element_type)

    return rule


def _bias(rewriter: Rewriter, op: CatalogueOp) -> SSAValue:
    """What is added to a product without summands."""
    bias = op.optional_operand("bias")
    zeros = _full(0)(rewriter, op)
    if bias is None:
        return zeros
    bias = rewriter.typecast(bias, op.result_type.element_type)
    return rewriter.emit("add", [zeros, bias], op.result_type)


def _rest(rewriter: Rewriter, op: CatalogueOp) -> SSAValue:
    """The parts that have elements."""
    rank = len(op.result_shape)
    parts = [value for value in op.operands if not _is_empty(value)]
    return rewriter.concat(parts, op.parameter("dim") % rank)


_FROM_NOTHING: Mapping[str, Callable[[Rewriter, CatalogueOp], SSAValue]] = {
    "sum": _full(0),
    "mean": _full(nan),
    "prod": _full(1),
    "reduce_and": _full(1),
    "reduce_or": _full(0),
    # What the two become; of numbers, verifiers refuse these.
    "min": _full(1),
    "max": _full(0),
    "matmul": _full(0),
    "dot_general": _full(0),
    "linear": _bias,
    "concat": _rest,
    "pad": lambda rewriter, op: _full(op.parameter("value"))(rewriter, op),
    "embedding_backward": _full(0),
}
"""What ops give that have results with elements, but operands without."""


def _without_elements(rewriter: Rewriter, op: CatalogueOp) -> Replacement | None:
    if op.results and all([_is_empty(result) for result in op.results]):
        return [
            rewriter.full(shape_of(result.type), 0, element_of(result.type))
            for result in op.results
        ]
    rule = _FROM_NOTHING.get(op.definition.short_name)
    if rule is None or len(op.results) != 1 or not any(map(_is_empty, op.operands)):
        return None
    return rule(rewriter, op)


def _may_go(definition: TTIRDefinition) -> bool:
    """Whether nothing is lost with the op."""
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
