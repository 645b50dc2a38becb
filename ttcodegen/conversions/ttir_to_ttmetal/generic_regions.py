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

# Kind, root and shape of the program of a `ttir.generic`, derived from the ops of its region.


class NoProgram(Exception):
    """Reason for which ops cannot be one program."""


def complete(group: Group) -> None:
    """Derives kind, root and shape of a group from its ops, and sorts producers before the root.

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
        _sort_producers(group, root)
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


def _sort_producers(group: Group, root: CatalogueOp) -> None:
    """Moves the ops that the root depends on before it, and the others after it."""
    producers: dict[SSAValue, CatalogueOp] = {}
    for op in group.ops:
        producers |= dict.fromkeys(op.results, op)
    before: set[CatalogueOp] = set()
    pending = [root]
    while pending:
        for value in pending.pop().operands:
            if (producer := producers.get(value)) is not None and producer not in before:
                before.add(producer)
                pending.append(producer)
    others = [op for op in group.ops if op is not root]
    group.ops[:] = [
        *(op for op in others if op in before), root, *(op for op in others if op not in before)
    ]  # fmt: skip


def _check(group: Group) -> None:
    """Raises NoProgram if the ops cannot share a program."""
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


# Loops and index maps of the `ttir.generic` of a program.
#
# The loops of elementwise ops iterate over the result, also if reductions of its rows are among
# them; those of a reduction over its operand, those of a matmul over the result and the inner
# dimension. Broadcast dimensions are read at index 0. Movements have no maps: the op in the region
# defines where their elements come from.

Places = tuple[int | None, ...]
"""Loop that each dimension of a tensor moves with; None for index 0."""


@dataclass(frozen=True)
class Loops:
    """Loops of a program, and the index maps of its tensors."""

    types: tuple[IteratorType, ...] = ()
    sizes: tuple[int, ...] = ()
    maps: tuple[Places, ...] = ()
    """Maps of the inputs, then of the outputs; empty for movements."""

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
        """Returns whether attributes describe the same loops, in any order, or are empty.

        Args:
            iterator_types: iterator types of the attributes.
            indexing_maps: index maps of the attributes.
            shapes: shapes of the operands here.
            given_shapes: shapes that the attributes refer to; dimensions of size 1 may differ.
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
    """Returns the loops of a group's program with these operands."""
    if group.kind is Kind.MATMUL:
        assert group.root is not None
        types, sizes, known, result = _matmul_loops(group.root)
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
        # If no result has full rows, the rows are reduced.
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


def _matmul_loops(
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
    """Index map of a tensor that broadcasts over these dimensions."""
    places = around[len(around) - len(shape) :]
    return tuple(
        None if place is None or (size == 1 and sizes[place] != 1) else place
        for size, place in zip(shape, places, strict=True)
    )


def _expression(place: int | None) -> AffineExpr:
    return AffineConstantExpr(0) if place is None else AffineDimExpr(place)


def _places_of(attribute: Attribute) -> Places | None:
    """Loops that an affine map refers to; None if it has other expressions."""
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
    """Renumbers loops by first occurrence, last maps first; returns maps and order."""
    order: list[int] = []
    for places in reversed(maps):
        order += [p for p in dict.fromkeys(places) if p is not None and p not in order]
    numbers = {loop: number for number, loop in enumerate(order)}
    return [tuple(None if p is None else numbers[p] for p in places) for places in maps], order


def _moving(maps: Sequence[Places], shapes: Sequence[Sequence[int]]) -> list[Places]:
    """Maps without dimensions of size 1, where index 0 and a loop index are the same."""
    return [
        tuple(place for place, size in zip(places, shape, strict=True) if size != 1)
        for places, shape in zip(maps, shapes, strict=True)
    ]
