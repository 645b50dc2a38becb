"""Computes on rows in a layout without padding, instead of reshaping tensors in between.

A tensor of 32x1x8192 takes 32 times as many tiles as its rows, 32x8192, do; one of 8x56x56x64 is
not what a convolution gave, and bringing it there moves every element. What is computed element by
element, or row by row, gives the same for any arrangement of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type
from ttcodegen.dialects.operations.attribute_kinds import INTEGER, INTEGERS
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import copy_source_offset
from ttcodegen.layout.placements import TiledShape
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import call_kind
from ttcodegen.ops.core.traits import CallKind
from ttcodegen.ops.dialects import ttnn_op_classes
from ttcodegen.ops.elementwise import binary as elementwise_binary
from ttcodegen.ops.elementwise import unary as elementwise_unary
from ttcodegen.ops.movement.data_movement import reshaped
from ttcodegen.optimizer.cost.unplaced_time import apply_if_faster
from ttcodegen.transforms.rebuilding import body_of, keep, rebuild
from ttcodegen.transforms.rewriting import erase_dead

Shape = tuple[int, ...]

RESHAPES = ("reshape", "reshape_row_major")
MUCH_PADDING = 4
"""Ratio of tile bytes to row bytes above which a result is returned in rows."""
ALONG_ROWS = frozenset({"concat", "slice_static"})
"""Ops that work on each row alone if they work along the last dimension; so do normalizations."""


@cache
def elementwise() -> frozenset[str]:
    """The calls that compute each element from those in its place."""
    rows = (*elementwise_unary.ROWS, *elementwise_binary.ROWS)
    return frozenset({*(row.ttnn or row.name for row in rows), "typecast"})


@dataclass(frozen=True)
class DenseRows(ModulePass):
    """Moves reshapes after ops that work row by row, and cancels them, where that saves time: what
    is won on some tensors is lost where others are reshaped to go with them."""

    name = "ttnn-dense-rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_if_faster(ctx, op, RESHAPES, _arrange)


def _arrange(function: FuncOp) -> None:
    classes = ttnn_op_classes()
    rows = _Rows()
    rebuild(function, lambda insert, m: OpBuilder(classes, insert, m), rows.rewrite)
    _join_reshapes(function)
    _return_rows(function)
    erase_dead(function)


def _return_rows(function: FuncOp) -> None:
    """Results that would be little but padding in tiles are returned in rows."""
    made = ttnn_op_classes()["reshape_row_major"]
    terminator = body_of(function).last_op
    for value in () if terminator is None else tuple(terminator.operands):
        op = value.owner
        if isinstance(op, CatalogueOp) and op.definition.short_name == "reshape":
            source, result = op.shape("input"), op.result_shape
            if (
                TiledShape(result).tiles >= MUCH_PADDING * TiledShape(source).tiles
                and value.has_one_use()
            ):
                in_rows = made.create(
                    operands=op.operands, result_types=[value.type], properties=op.properties
                )
                copy_source_offset(op, in_rows)
                in_rows.results[0].name_hint = value.name_hint
                Rewriter.replace_op(op, in_rows)


def _join_reshapes(function: FuncOp) -> None:
    """A reshape of what only it uses of another reshape is one of what that had."""
    for op in body_of(function).ops:
        if not isinstance(op, CatalogueOp) or op.definition.short_name != "reshape":
            continue
        before = op.operands[0].owner
        if (
            isinstance(before, CatalogueOp)
            and before.definition.short_name == "reshape"
            and before.results[0].has_one_use()
        ):
            op.operands[0] = before.operands[0]


@dataclass
class _Rows:
    """Rewrites one function."""

    dense: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """For values that were reshaped, what holds the same rows with less padding, or as little."""

    def rewrite(self, builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
        name = op.definition.short_name
        operands = [builder[value] for value in op.operands]
        if name in RESHAPES:
            return [self._reshaped(builder, op, operands[0])]
        if name == "slice_static" and (made := self._row_of_each(builder, op, operands[0])):
            return [made]
        if len(op.results) == 1 and self._works_on_rows(op):
            made = self._computed(builder, op, operands)
            if made is not None:
                return [made]
        keep(builder, op, operands)
        return op.results

    def _reshaped(self, builder: OpBuilder, op: CatalogueOp, value: SSAValue) -> SSAValue:
        source = self.dense.get(value, value)
        shape = op.result_shape
        if shape_of(source.type) == shape:
            return source
        squeezed = _without_single_rows(shape)
        if source is value and shape[-1:] != shape_of(value.type)[-1:] and squeezed is not None:
            source = reshaped(builder, value, squeezed)
            result: SSAValue = reshaped(builder, source, shape)
        elif source is value:
            keep(builder, op, [value])
            result = op.results[0]
        else:
            result = reshaped(builder, source, shape)
        self._remember(result, source)
        return result

    def _remember(self, value: SSAValue, source: SSAValue) -> None:
        """`source` replaces `value` if it has the same rows and no more padding."""
        shape, other = shape_of(value.type), shape_of(source.type)
        if len(shape) > 1 and len(other) > 1 and shape[-1] == other[-1]:
            if TiledShape(other).tiles <= TiledShape(shape).tiles:
                self.dense[value] = source

    def _works_on_rows(self, op: CatalogueOp) -> bool:
        name, rank = op.definition.short_name, len(op.result_shape)
        if rank < 2 or op.definition.in_place is not None:
            return False
        if name in elementwise() or name == "where":
            return True
        if name not in ALONG_ROWS and call_kind(name) is not CallKind.NORMALIZATION:
            return False
        if name in ("softmax", "concat"):
            dimension: int = op.parameter("dimension" if name == "softmax" else "dim")
            return dimension % rank == rank - 1
        if name == "slice_static":
            begins, ends, steps = (op.parameter(key) for key in ("begins", "ends", "step"))
            return all(
                (begin, end, step) == (0, size, 1)
                for begin, end, step, size in zip(
                    begins[:-1], ends[:-1], steps[:-1], op.shape("input")[:-1], strict=True
                )
            )
        return True

    def _computed(
        self, builder: OpBuilder, op: CatalogueOp, operands: Sequence[SSAValue]
    ) -> SSAValue | None:
        """The result as a reshape of what was computed on dense rows; None if nothing is won."""
        shape = op.result_shape
        found = [self.dense[value] for value in operands if value in self.dense]
        found = [v for v in found if prod(shape_of(v.type)[:-1]) == prod(shape[:-1])]
        if not found:
            return None
        rows = min(
            (shape_of(value.type)[:-1] for value in found), key=lambda s: TiledShape((*s, 1)).tiles
        )
        dense_shape = (*rows, shape[-1])
        if TiledShape(dense_shape).tiles > TiledShape(shape).tiles:
            return None
        taken: list[SSAValue] = []
        for value in operands:
            arranged = self._arranged(builder, value, shape, rows)
            if arranged is None:
                return None
            taken.append(arranged)
        made = type(op).create(
            operands=taken,
            result_types=[tensor_type(element_of(op.results[0].type), dense_shape)],
            properties={**op.properties, **_on_rows(op, len(dense_shape), taken[0])},
            attributes=op.attributes,
            location=op.location,
        )
        made.source_offset = op.source_offset
        builder.insert(made)
        made.results[0].name_hint = op.results[0].name_hint
        result = reshaped(builder, made.results[0], shape)
        if result is not made.results[0]:
            self.dense[result] = made.results[0]
        return result

    def _row_of_each(self, builder: OpBuilder, op: CatalogueOp, value: SSAValue) -> SSAValue | None:
        """One row of each matrix of a batch, as rows of the matrices one after the other that are
        equally far apart; None if that is not what a slice takes."""
        shape, source = op.shape("input"), self.dense.get(value)
        if source is None or len(shape) != 3 or op.result_shape[1] != 1 or shape[1] == 1:
            return None
        begins, ends, steps = (op.parameter(key) for key in ("begins", "ends", "step"))
        if (begins[0], ends[0], steps[0]) != (0, shape[0], 1):
            return None
        rows = shape[0] * shape[1]
        matrix = reshaped(builder, source, (rows, shape[2]))
        taken = builder.emit(
            "slice_static",
            [matrix],
            tensor_type(element_of(value.type), (shape[0], op.result_shape[2])),
            begins=[begins[1], begins[2]],
            ends=[rows, ends[2]],
            step=[shape[1], steps[2]],
        )
        result = reshaped(builder, taken, op.result_shape)
        self.dense[result] = taken
        return result

    def _arranged(
        self, builder: OpBuilder, value: SSAValue, shape: Shape, rows: Shape
    ) -> SSAValue | None:
        """An operand as it goes with these rows; None if it broadcasts along some of them."""
        found = shape_of(value.type)
        if prod(found[:-1]) == 1:
            width = found[-1:] or (1,)
            return reshaped(builder, value, (*[1] * len(rows), *width)) if len(found) > 1 else value
        if len(found) != len(shape) or found[:-1] != shape[:-1]:
            return None
        dense = self.dense.get(value, value)
        return reshaped(builder, dense, (*rows, found[-1]))


def _without_single_rows(shape: Shape) -> Shape | None:
    """The shape of the same rows where each matrix has a single one, (users, heads, 1, size); None
    of other shapes."""
    if len(shape) < 3 or shape[-2] != 1 or shape[-3] == 1:
        return None
    return (*shape[:-2], shape[-1])


def _on_rows(op: CatalogueOp, rank: int, source: SSAValue) -> dict[str, Attribute]:
    """The attributes that name dimensions, for tensors of another rank."""
    name = op.definition.short_name
    if name in ("softmax", "concat"):
        return {"dimension" if name == "softmax" else "dim": INTEGER.encode(rank - 1)}
    if name == "slice_static":
        rows = list(shape_of(source.type)[:-1])
        begins, ends, steps = (op.parameter(key) for key in ("begins", "ends", "step"))
        return {
            "begins": INTEGERS.encode([0] * (rank - 1) + [begins[-1]]),
            "ends": INTEGERS.encode([*rows, ends[-1]]),
            "step": INTEGERS.encode([1] * (rank - 1) + [steps[-1]]),
        }
    return {}
