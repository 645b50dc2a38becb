"""Replaces the body of a function in one linear walk."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.operations.functions import body_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.naming.sources import name_intermediates, name_replacement
from ttcodegen.ops.core.builder import OpBuilder


def rebuild(
    function: FuncOp,
    builder_of: Callable[[Callable[[Operation], None], dict[SSAValue, SSAValue]], OpBuilder],
    rewrite: Callable[[OpBuilder, CatalogueOp], SSAValue | Sequence[SSAValue]],
) -> None:
    """Replaces every catalogue op of a function by what `rewrite` makes of it.

    `rewrite` may insert the op itself, changed, which is cheaper than another one of its kind.
    Other ops (return, calls) are kept with their operands mapped. A name of a replaced value goes
    to the value that replaces it, unless that one has a name of its own.
    """
    block = body_of(function)
    made: list[Operation] = []
    mapping: dict[SSAValue, SSAValue] = {}
    builder = builder_of(made.append, mapping)
    old = list(block.ops)
    for op in old:
        builder.origin = op
        if isinstance(op, CatalogueOp):
            start = len(made)
            values = rewrite(builder, op)
            if isinstance(values, SSAValue):
                values = (values,)
            for result, value in zip(op.results, values, strict=True):
                mapping[result] = value
                name_replacement(value, result)
            name_intermediates(made[start:], op)
        else:
            keep(builder, op, [builder[value] for value in op.operands])
    kept = set(made)
    for op in reversed(old):
        op.detach()
        if op not in kept:
            op.drop_all_references()
    block.add_ops(made)


def keep(builder: OpBuilder, op: Operation, operands: Sequence[SSAValue]) -> None:
    """Inserts an op of the function itself, with these operands."""
    if any([new is not old for new, old in zip(operands, op.operands, strict=True)]):
        op.operands = operands
    builder.insert(op)
