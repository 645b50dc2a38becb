"""Table of all rules."""

from __future__ import annotations

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.frontends.stablehlo import (
    bits,
    collectives,
    complex_numbers,
    composites,
    control,
    elementwise,
    indexing,
    linear_algebra,
    matmuls,
    movement,
    reductions,
    windows,
)
from ttcodegen.frontends.stablehlo.conversion import Conversion, Results, Rule, Value
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp
from ttcodegen.ops.core.builder import broadcast_shapes


def _broadcasting(rule: Rule) -> Rule:
    """Applies a rule to operands that are first broadcast to one shape.

    Trailing dimensions are aligned, or those that `broadcast_dimensions` gives for the operand of
    lower rank.
    """

    def broadcast(conversion: Conversion, op: StableHLOOp) -> Results:
        operands = conversion.tensors(op)
        shapes = [shape_of(operand.type) for operand in operands]
        shape = broadcast_shapes(shapes)
        dims = op.get("broadcast_dimensions")
        if dims is not None and len(dims) < max(map(len, shapes)):
            shape = max(shapes, key=len)
        if shape is None:
            raise ValueError(f"shapes {shapes} do not broadcast")
        wide: dict[int, Value] = {}
        for index, operand in enumerate(operands):
            rank = len(shapes[index])
            places = list(range(len(shape) - rank, len(shape)))
            if dims is not None and rank < len(shape):
                places = [int(dim) for dim in dims]
            wide[index] = movement.broadcast_in_dim(conversion, operand, places, shape)
        with conversion.replaced({op.operands[index]: value for index, value in wide.items()}):
            return rule(conversion, op)

    return broadcast


_PLAIN: dict[str, Rule] = {
    **elementwise.RULES,
    **bits.RULES,
    **complex_numbers.RULES,
    **movement.RULES,
    **matmuls.RULES,
    **reductions.RULES,
    **linear_algebra.RULES,
    **windows.RULES,
    **indexing.RULES,
    **control.RULES,
    **collectives.RULES,
    **composites.RULES,
    **movement.RANDOM_RULES,
}
RULES: dict[str, Rule] = {
    **{f"broadcast_{name}": _broadcasting(rule) for name, rule in elementwise.RULES.items()},
    "broadcast_complex": _broadcasting(complex_numbers.RULES["complex"]),
    **_PLAIN,
}
"""Rule of each operation, by its name without the dialect."""
