"""Row-major moves: rows that do not fill tiles are concatenated and reshaped in row-major layout.

In tiles, the library untilizes operands of a concatenation whose rows end within a tile, and a
reshape moves nearly every row if it divides rows into matrices otherwise. In row-major layout, rows
are copied as they are, and reshapes that keep the last dimension are views.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttnn.placement import TensorPlacement, declared_data_type
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.dialects import ttnn_op_classes
from ttcodegen.ops.movement.data_movement import MOVED_ROWS
from ttcodegen.optimizer.call import LibraryCall
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.transforms.const_eval import constant_values
from ttcodegen.transforms.rewriting import erase_dead, keep, rebuild

_NO_ATTRIBUTES: Mapping[str, int] = {}


@dataclass(frozen=True)
class RowMajorMoves(ModulePass):
    """Concatenates and reshapes row-major where the cost model gains by it, conversions included.

    Data of const-eval calls is moved once and stays in tiles.
    """

    name = "ttnn-row-major-moves"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        model = CostModel.of(op)
        classes = ttnn_op_classes()
        for function in list(op.walk()):
            if isinstance(function, FuncOp):
                moves = _Moves(model, constant_values(function))
                if moves.find(function):
                    rebuild(
                        function, lambda insert, m: OpBuilder(classes, insert, m), moves.rewrite
                    )
                    erase_dead(function)


class _Moves:
    """Rewriter of the concatenations and reshapes of one function."""

    def __init__(self, model: CostModel, constants: set[SSAValue]) -> None:
        self._model = model
        self._constants = constants
        self._joins: set[CatalogueOp] = set()
        self._reshapes: set[CatalogueOp] = set()

    def find(self, function: FuncOp) -> bool:
        """Finds the calls that take less time row-major; returns whether there are any."""
        for op in function.walk():
            if not isinstance(op, CatalogueOp) or not self._is_movable(op):
                continue
            if op.definition.short_name == "concat" and self._joins_faster(op):
                self._joins.add(op)
            elif op.definition.short_name == "reshape" and self._reshapes_faster(op):
                self._reshapes.add(op)
        return bool(self._joins or self._reshapes)

    def rewrite(self, builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
        """Replaces a call, and the reshapes of operands of a concatenation, by row-major ones."""
        if op in self._reshapes:
            return [_reshaped_rows(builder, op.results[0])]
        if op not in self._joins:
            keep(builder, op, [builder[value] for value in op.operands])
            return op.results
        rows = [
            builder[value] if _reshaped(value) is None else _reshaped_rows(builder, value)
            for value in op.operands
        ]
        dim = op.parameter("dim")
        return [builder.emit("concat_row_major", [rows], op.results[0].type, dim=dim)]

    def _is_movable(self, op: CatalogueOp) -> bool:
        return (
            op.definition.short_name in ("concat", "reshape")
            and op.results[0] not in self._constants
            and declared_data_type(op.results[0]) in MOVED_ROWS
        )

    def _joins_faster(self, op: CatalogueOp) -> bool:
        if not _splits_tiles(op):
            return False
        result, attributes = op.results[0], {"dim": op.parameter("dim")}
        before = self._seconds("concat", map(_tiled, op.operands), _tiled(result), attributes)
        rows = map(_row_major, op.operands)
        after = self._seconds("concat_row_major", rows, _row_major(result), attributes)
        after += self._seconds("to_layout", [_row_major(result)], _tiled(result))
        for value in op.operands:
            if value not in self._constants:
                source = _reshaped(value)
                if source is not None:
                    before += self._seconds("reshape", [_tiled(source)], _tiled(value))
                after += self._untilized_seconds(value if source is None else source)
        return after < before

    def _reshapes_faster(self, op: CatalogueOp) -> bool:
        (source,), result = op.operands, op.results[0]
        if not _keeps_rows(op):
            return False
        tilized = self._seconds("to_layout", [_row_major(result)], _tiled(result))
        before = self._seconds("reshape", [_tiled(source)], _tiled(result))
        return self._untilized_seconds(source) + tilized < before

    def _untilized_seconds(self, value: SSAValue) -> float:
        return self._seconds("to_layout", [_tiled(value)], _row_major(value))

    def _seconds(
        self,
        name: str,
        operands: Iterable[TensorPlacement],
        result: TensorPlacement,
        attributes: Mapping[str, int] = _NO_ATTRIBUTES,
    ) -> float:
        return self._model.seconds(LibraryCall(name, tuple(operands), (result,), attributes))


def _splits_tiles(op: CatalogueOp) -> bool:
    """True if an operand before the last ends within a tile along the rows of matrices."""
    rank = len(op.result_shape)
    rows = op.parameter("dim") % rank == rank - 2
    return rows and any(shape_of(each.type)[-2] % TILE_SIDE for each in op.operands[:-1])


def _keeps_rows(op: CatalogueOp) -> bool:
    """True for a reshape that keeps the last dimension."""
    return shape_of(op.operands[0].type)[-1:] == op.result_shape[-1:]


def _reshaped(value: SSAValue) -> SSAValue | None:
    """Returns the operand of a reshape that keeps rows whole and has no other user."""
    op = value.owner
    if not isinstance(op, CatalogueOp) or op.definition.short_name != "reshape":
        return None
    return op.operands[0] if _keeps_rows(op) and value.has_one_use() else None


def _reshaped_rows(builder: OpBuilder, value: SSAValue) -> SSAValue:
    """Emits a row-major reshape instead of the one that returns a value."""
    op = value.owner
    assert isinstance(op, CatalogueOp)
    shape = list(op.result_shape)
    made = builder.emit("reshape_row_major", [builder[op.operands[0]]], value.type, shape=shape)
    made.name_hint = value.name_hint
    return made


def _tiled(value: SSAValue) -> TensorPlacement:
    return TensorPlacement(shape_of(value.type), declared_data_type(value))


def _row_major(value: SSAValue) -> TensorPlacement:
    return _tiled(value).with_(layout=Layout.ROW_MAJOR)
