"""What the program of a `ttir.generic` is built around, read off the ops of its region."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.coverage import unsupported_reason
from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import (
    INDEXED,
    MAX_BUFFERS,
    SCATTER,
    WINDOWS,
    Group,
    Kind,
    draws,
    fits,
    is_fill,
    is_reordering,
    pads_tiles,
)
from ttcodegen.conversions.ttir_to_ttmetal.grouping.reductions import REDUCTIONS
from ttcodegen.conversions.ttir_to_ttmetal.grouping.row_plan import begins_rows
from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_chains import is_elementwise
from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.attention.forms import ATTENTION
from ttcodegen.ops.core.definition import has_trait
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.tt_lang import CALLED_OPERATION


class NoProgram(Exception):
    """Why ops cannot be one program."""


def complete(group: Group) -> None:
    """Gives a group of which only the ops are known its kind, root and shape, and puts what the
    root reads before it.

    Raises:
        NoProgram: if the ops cannot be one program.
    """
    for op in group.ops:
        if (reason := unsupported_reason(op)) is not None:
            raise NoProgram(reason)
    if not group.ops:
        raise NoProgram("it computes nothing")
    if not group.draws and (rows := begins_rows(group.ops)) is not None:
        group.kind, group.root, group.shape = Kind.ROWS, None, rows
        if fits(group):
            return
    if len(group.ops) > 1 and is_reordering(group.ops):
        group.kind, group.root = Kind.MOVEMENT, group.ops[-1]
        group.shape = shape_of(group.ops[0].operands[0].type)
        return
    roots = [op for op in group.ops if not is_elementwise(op) and not is_fill(op)]
    if group.draws and roots:
        drawing = next(op for op in group.ops if draws(op))
        raise NoProgram(
            f"'{drawing.name}' only goes with elementwise ops, not with '{roots[0].name}'"
        )
    if len(roots) > 1:
        names = " and ".join(f"'{op.name}'" for op in roots[:2])
        raise NoProgram(f"a program has one reduction, product or movement, not {names}")
    group.root = root = roots[0] if roots else None
    group.kind = Kind.TILES if root is None else _kind_of(root)
    if root is None:
        group.shape = group.ops[0].result_shape
    else:
        group.shape = shape_of((*root.operands, *root.results)[0].type)
        _order(group, root)
    _check(group)
    if group.kind.computes and not fits(group):
        raise NoProgram(
            f"its values do not fit into the registers, or its tensors into {MAX_BUFFERS} buffers"
        )


def _kind_of(root: CatalogueOp) -> Kind:
    if root.name in REDUCTIONS:
        return Kind.TILES
    if root.definition.in_place is not None:
        return Kind.CACHE
    if has_trait(root, Trait.ORDERS):
        return Kind.ORDER
    if root.name == CALLED_OPERATION:
        return Kind.OPERATION
    if root.name in WINDOWS:
        return Kind.WINDOW
    if root.name == ATTENTION:
        return Kind.ATTENTION
    if root.name in INDEXED:
        return Kind.INDEXED
    if root.name == SCATTER:
        return Kind.SCATTER
    return Kind.MATMUL if root.name == "ttir.matmul" else Kind.MOVEMENT


def _order(group: Group, root: CatalogueOp) -> None:
    """Puts the ops that the root reads the results of before it, and the others after."""
    makers: dict[SSAValue, CatalogueOp] = {}
    for op in group.ops:
        makers |= dict.fromkeys(op.results, op)
    before: set[CatalogueOp] = set()
    pending = [root]
    while pending:
        for value in pending.pop().operands:
            if (maker := makers.get(value)) is not None and maker not in before:
                before.add(maker)
                pending.append(maker)
    others = [op for op in group.ops if op is not root]
    group.ops[:] = [
        *(op for op in others if op in before), root, *(op for op in others if op not in before)
    ]  # fmt: skip


def _check(group: Group) -> None:
    """Raises NoProgram where the ops do not go together."""
    root = group.root
    _check_shapes(group.producers, group.shape)
    if root is None:
        return
    if group.epilogue:
        _check_shapes(group.epilogue, group.result_shape)
    if group.kind is not Kind.TILES and group.producers:
        raise NoProgram(f"'{group.producers[0].name}' comes before '{root.name}'")
    if not group.kind.computes and group.epilogue:
        raise NoProgram(f"'{root.name}' is a program of its own")
    inside = {*group.producers, root}
    for op in group.producers:
        if any(use.operation not in inside for use in op.results[0].uses):
            raise NoProgram(f"what '{op.name}' gives is needed besides by '{root.name}'")
    if group.producers and pads_tiles(root):
        raise NoProgram(
            f"'{root.name}' reduces tiles that are not full, after '{group.producers[-1].name}'"
        )


def _check_shapes(ops: Sequence[CatalogueOp], shape: tuple[int, ...]) -> None:
    for op in ops:
        if op.result_shape != shape:
            raise NoProgram(
                f"'{op.name}' gives the shape {op.result_shape}, other ops {shape}: the loops of a "
                "program are the same for all"
            )
