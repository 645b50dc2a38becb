"""Regions of `ttir.generic`: the group of ops in each, and the index maps of its operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from ttcodegen.conversions.ttir_to_ttmetal.cpu_hoist import unsupported_reason
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
from ttcodegen.conversions.ttir_to_ttmetal.grouping.row_plan import begins_rows
from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_operations import (
    REDUCTIONS,
    is_elementwise,
)
from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import IteratorType, IteratorTypeAttr
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.ops.attention.sdpa import ATTENTION
from ttcodegen.ops.core.builder import broadcast_shapes
from ttcodegen.ops.core.definition import has_trait
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.tt_lang import CALLED_OPERATION

# What the program of a `ttir.generic` is built around, read off the ops of its region.


class NoProgram(Exception):
    """Reason for which ops cannot be one program."""


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


# Which elements the operands of a program's `ttir.generic` give to each step of its loops.
#
# The loops of elementwise ops go over the result, also where reductions of its rows are among
# them; those of a reduction over what is reduced, those of a matmul over the result
# and the inner dimension. What has size 1 where others have more is read at index 0 always.
# Movements have no maps: where their elements come from is what the op in the region says.

Places = tuple[int | None, ...]
"""For each dimension of a tensor the loop that it moves with, None if it stays at index 0."""


@dataclass(frozen=True)
class Loops:
    """The loops of a program, and how its tensors are read and written in them."""

    types: tuple[IteratorType, ...] = ()
    sizes: tuple[int, ...] = ()
    maps: tuple[Places, ...] = ()
    """Of the inputs, then of the outputs; none at all for movements."""

    @property
    def iterator_types(self) -> ArrayAttr[Attribute]:
        return ArrayAttr([IteratorTypeAttr(type_) for type_ in self.types])

    @property
    def indexing_maps(self) -> ArrayAttr[Attribute]:
        rank = len(self.types)
        return ArrayAttr(
            [AffineMapAttr(AffineMap(rank, 0, tuple(map(_expression, m)))) for m in self.maps]
        )

    def agrees_with(
        self,
        iterator_types: ArrayAttr[Attribute],
        indexing_maps: ArrayAttr[Attribute],
        shapes: Sequence[Sequence[int]],
        given_shapes: Sequence[Sequence[int]],
    ) -> bool:
        """True if these attributes say the same of operands, perhaps of loops in another order, or
        nothing.

        Args:
            iterator_types: the kinds of the loops.
            indexing_maps: those of the operands.
            shapes: those that the operands have here.
            given_shapes: those that they have for the attributes, with other dimensions of one
                element.
        """
        if not indexing_maps.data or not self.maps:
            return not indexing_maps.data and not self.maps
        types = [a.data for a in iterator_types.data if isinstance(a, IteratorTypeAttr)]
        maps = [_places_of(attribute) for attribute in indexing_maps.data]
        given = [each for each in maps if each is not None]
        if len(given) != len(self.maps) or any(
            len(places) != len(shape) for places, shape in zip(given, given_shapes, strict=True)
        ):
            return False
        ours, order = _renumbered(_moving(self.maps, shapes))
        theirs, other = _renumbered(_moving(given, given_shapes))
        return ours == theirs and [self.types[p] for p in order] == [types[p] for p in other]


def loops_of(group: Group, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Loops:
    """The loops of a group's program with these operands."""
    if group.kind is Kind.MATMUL:
        assert group.root is not None
        types, sizes, known, result = _product_loops(group.root)
    elif group.kind in (Kind.TILES, Kind.ROWS):
        types, sizes, result = _tile_loops(group, outputs)
        known: Mapping[SSAValue, Places] = {}
    else:
        return Loops()
    before = {operand for op in group.producers for operand in op.operands}
    if group.root is not None:
        before |= set(group.root.operands)
    whole: Places = tuple(range(len(group.shape)))
    maps: list[Places] = []
    for value in inputs:
        shape = shape_of(value.type)
        around = whole if group.kind is Kind.TILES and value in before else result
        maps.append(known.get(value) or _aligned(shape, around, sizes))
    maps += [_aligned(shape_of(value.type), result, sizes) for value in outputs]
    return Loops(tuple(types), tuple(sizes), tuple(maps))


def _tile_loops(
    group: Group, outputs: Sequence[SSAValue]
) -> tuple[list[IteratorType], Sequence[int], Places]:
    shape, kept = group.shape, group.result_shape
    if group.kind is Kind.ROWS:
        # Reductions of rows whose results do not come back to them are all that is left of them.
        kept = broadcast_shapes([shape_of(value.type) for value in outputs]) or shape
        kept = (1,) * (len(shape) - len(kept)) + tuple(kept)
    if group.root is not None and len(kept) < len(shape):
        raise CompileError(
            f"'{group.root.name}' drops the dimensions that it reduces, and a program keeps them",
            group.root,
            remedy="run --ttir-primitives first, or reduce with keep_dim = true",
        )
    reduced: set[int] = set()
    if group.root is not None or group.kind is Kind.ROWS:
        reduced = {axis for axis, size in enumerate(shape) if size != kept[axis]}
    types = [
        IteratorType.REDUCTION if axis in reduced else IteratorType.PARALLEL
        for axis in range(len(shape))
    ]
    given = reduced if group.kind is Kind.TILES else ()
    return types, shape, tuple(None if axis in given else axis for axis in range(len(shape)))


def _product_loops(
    op: CatalogueOp,
) -> tuple[list[IteratorType], list[int], Mapping[SSAValue, Places], Places]:
    left, right = (list(shape_of(value.type)) for value in op.operands[:2])
    batch = op.result_shape[: len(op.result_shape) - (len(left) > 1) - (len(right) > 1)]
    sizes = list(batch)
    rows = columns = None
    flipped = bool(op.parameter("transpose_a")), bool(op.parameter("transpose_b"))
    if len(left) > 1:
        rows = len(sizes)
        sizes.append(left[-1] if flipped[0] else left[-2])
    if len(right) > 1:
        columns = len(sizes)
        sizes.append(right[-2] if flipped[1] else right[-1])
    inner = len(sizes)
    sizes.append(left[-2] if flipped[0] and rows is not None else left[-1])
    types = [IteratorType.PARALLEL] * inner + [IteratorType.REDUCTION]
    leading: Places = tuple(range(len(batch)))
    pairs = ((rows, inner), (inner, columns))
    known: dict[SSAValue, Places] = {}
    for value, pair, flip in zip(op.operands, pairs, flipped, strict=False):
        shape = shape_of(value.type)
        last = [place for place in pair if place is not None]
        outer = _aligned(shape[: len(shape) - len(last)], leading, sizes)
        known[value] = (*outer, *(reversed(last) if flip else last))
    result = (*leading, *(place for place in (rows, columns) if place is not None))
    return types, sizes, known, result


def _aligned(shape: Sequence[int], around: Places, sizes: Sequence[int]) -> Places:
    """Index map of a tensor broadcast over dimensions at these positions."""
    places = around[len(around) - len(shape) :]
    return tuple(
        None if place is None or (size == 1 and sizes[place] != 1) else place
        for size, place in zip(shape, places, strict=True)
    )


def _expression(place: int | None) -> AffineExpr:
    return AffineConstantExpr(0) if place is None else AffineDimExpr(place)


def _places_of(attribute: Attribute) -> Places | None:
    """The positions that a map says, None if it says something else."""
    assert isinstance(attribute, AffineMapAttr)
    found: list[int | None] = []
    for result in attribute.data.results:
        if isinstance(result, AffineDimExpr):
            found.append(result.position)
        elif isinstance(result, AffineConstantExpr) and result.value == 0:
            found.append(None)
        else:
            return None
    return tuple(found)


def _renumbered(maps: Sequence[Places]) -> tuple[list[Places], list[int]]:
    """The maps with loops numbered in the order in which the maps name them, last maps first; and
    the loops in that order."""
    order: list[int] = []
    for places in reversed(maps):
        order += [p for p in dict.fromkeys(places) if p is not None and p not in order]
    numbers = {loop: number for number, loop in enumerate(order)}
    return [tuple(None if p is None else numbers[p] for p in places) for places in maps], order


def _moving(maps: Sequence[Places], shapes: Sequence[Sequence[int]]) -> list[Places]:
    """The maps without dimensions of one element: index 0 and that of a loop are the same there."""
    return [
        tuple(place for place, size in zip(places, shape, strict=True) if size != 1)
        for places, shape in zip(maps, shapes, strict=True)
    ]
