"""What values are called that ops are replaced by: a name of the source stays with its value."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.operations.operation import CatalogueOp


def name_replacement(value: SSAValue, replaced: SSAValue) -> None:
    """Gives a value the name of the one that it replaces, unless it has one or is an argument."""
    if value.name_hint is None and isinstance(value.owner, Operation):
        value.name_hint = replaced.name_hint


def name_intermediates(ops: Sequence[Operation], origin: Operation) -> None:
    """What an op is made of is called as it is, but for operands that were only moved for it."""
    hint = origin.results[0].name_hint if origin.results else None
    if hint is None:
        return
    computed: set[SSAValue] = set()
    for op in ops:
        rearranges = isinstance(op, CatalogueOp) and op.definition.rearranges
        if rearranges and computed.isdisjoint(op.operands):
            continue
        for result in op.results:
            computed.add(result)
            if result.name_hint is None:
                result.name_hint = hint
