"""Batched rows: matmuls and rowwise ops run on a batch of matrices instead of its flattened rows.

In tiles, each matrix of 8x197x768 is padded by 27 rows, but 1576x768 by 24 rows in total: a reshape
between them moves nearly every row. Matmuls, normalizations and elementwise ops do not depend on
how rows are arranged, so reshapes cancel if all of them run on the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.layout.placements import TiledShape
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import call_has_trait, has_trait
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.movement.data_movement import reshaped
from ttcodegen.optimizer.call import LibraryCall
from ttcodegen.optimizer.cost.calls import CostModel, apply_if_faster
from ttcodegen.optimizer.matmul_candidates import MatmulCandidates
from ttcodegen.optimizer.programs.matmul import MatmulSizes
from ttcodegen.optimizer.rewrites import RESHAPES, recreate_op, rewrite_calls, works_on_rows
from ttcodegen.transforms.rewriting import body_of

Shape = tuple[int, ...]


@dataclass(frozen=True)
class BatchedRows(ModulePass):
    """Runs rowwise ops on batches of matrices, unless the cost model predicts a loss.

    A loss is possible, because the padding of each matrix is computed as well."""

    name = "ttnn-batched-rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        price = _Price(CostModel.of(op))
        for change in (_use_batches, _batch_left_operands):
            apply_if_faster(ctx, op, RESHAPES, change, price)


class _Price:
    """Seconds of calls; matmuls have their fastest program config, which a later pass chooses."""

    def __init__(self, model: CostModel) -> None:
        self._model = model
        self._matmuls = MatmulCandidates(model, False, model.grid)

    def __call__(self, call: LibraryCall) -> float:
        seconds = self._model.seconds(call)
        if not call_has_trait(call.name, Trait.MATRIX_PRODUCT) or MatmulSizes(call).batch_b != 1:
            return seconds
        return min(seconds, self._matmuls.fastest_seconds(call, self._matmuls.of(call)))


def _use_batches(function: FuncOp) -> bool:
    """Computes on batches instead of reshaping them to rows; False if there are none."""
    if not any(
        isinstance(op, CatalogueOp)
        and _is_reshape(op)
        and _is_batch_of(shape_of(op.operands[0].type), op.result_shape)
        for op in body_of(function).ops
    ):
        return False
    return rewrite_calls(function, _BatchedRows())


def _batch_left_operands(function: FuncOp) -> bool:
    """Reshapes left operands of matmuls instead of wider results; False if there are none."""
    wanted: dict[SSAValue, Shape] = {}
    for op in body_of(function).ops:
        if not isinstance(op, CatalogueOp) or not _is_reshape(op):
            continue
        (rows,), batch = op.operands, op.result_shape
        if _is_matrix_product(rows) and _is_batch_of(batch, shape_of(rows.type)):
            matmul = rows.owner
            assert isinstance(matmul, CatalogueOp)
            if matmul.shape("a")[-1] < batch[-1]:
                wanted.setdefault(rows, batch)
    return bool(wanted) and rewrite_calls(function, _BatchedRows(wanted))


def _is_reshape(op: object) -> bool:
    return isinstance(op, CatalogueOp) and op.definition.short_name in RESHAPES


def _is_matrix_product(value: SSAValue) -> bool:
    """Returns whether a value is a matmul by one matrix, so that its rows can be rearranged."""
    op = value.owner
    return (
        isinstance(op, CatalogueOp)
        and has_trait(op, Trait.MATRIX_PRODUCT)
        and not op.parameter("transpose_a")
        and len(op.shape("a")) == len(op.result_shape) == 2
        and prod(op.shape("b")[:-2]) == 1
        and len(op.shape("b")) >= 2
        and all(prod(shape_of(bias.type)[:-1]) == 1 for bias in op.operands[2:])
    )


def _is_batch_of(batch: Shape, rows: Shape) -> bool:
    """Returns whether a batch of matrices has these rows, and more padding in tiles."""
    return (
        len(batch) > 2
        and len(rows) == 2
        and batch[-1] == rows[-1]
        and prod(batch[:-1]) == rows[0]
        and 1 < batch[-2] < rows[0]
        and TiledShape(batch).tiles > TiledShape(rows).tiles
    )


@dataclass
class _BatchedRows:
    """Rule that moves the ops of one function from flattened rows to batches."""

    wanted: Mapping[SSAValue, Shape] = field(default_factory=dict[SSAValue, Shape])
    """Batched shapes of the matmul results whose left operands are to be reshaped."""
    batched: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Maps flattened rows to their batch of matrices."""
    matmuls: dict[SSAValue, tuple[CatalogueOp, Sequence[SSAValue]]] = field(
        default_factory=dict[SSAValue, tuple[CatalogueOp, Sequence[SSAValue]]]
    )
    """Rewritten matmuls of `wanted` and their operands, by their flattened results."""

    def __call__(
        self, builder: OpBuilder, op: CatalogueOp, operands: Sequence[SSAValue]
    ) -> Sequence[SSAValue] | None:
        made = None
        if _is_reshape(op):
            made = self._reshaped(op, operands[0])
        elif op.definition.short_name == "slice_static":
            made = self._matmul_of_rows(builder, op, operands[0])
            made = self._row_per_matrix(builder, op, operands[0]) if made is None else made
        elif len(op.results) == 1 and len(op.result_shape) == 2:
            made = self._computed(builder, op, operands)
        return None if made is None else [made]

    def _reshaped(self, op: CatalogueOp, value: SSAValue) -> SSAValue | None:
        """Returns the batch that a reshape restores; None to keep the reshape."""
        batch, shape = self.batched.get(value), op.result_shape
        if batch is not None and shape_of(batch.type) == shape:
            return batch
        if _is_batch_of(shape_of(value.type), shape):
            self.batched[op.results[0]] = value
        return None

    def _computed(
        self, builder: OpBuilder, op: CatalogueOp, operands: Sequence[SSAValue]
    ) -> SSAValue | None:
        """Computes an op on a batch and flattens the result.

        None if no operand has a batch, or an operand has other rows."""
        is_matmul = _is_matrix_product(op.results[0])
        if not is_matmul and not works_on_rows(op):
            return None
        candidates = operands[:1] if is_matmul else operands
        wanted = self.wanted.get(op.results[0])
        if wanted is not None and operands[0] not in self.batched:
            width = shape_of(operands[0].type)[-1]
            self.batched[operands[0]] = reshaped(builder, operands[0], (*wanted[:-1], width))
        found = next((self.batched[v] for v in candidates if v in self.batched), None)
        if found is None:
            return None
        rows = shape_of(found.type)[:-1]
        if prod(rows) != op.result_shape[0]:
            return None
        taken = [self._arranged(builder, value, rows) for value in candidates]
        if any(value is None for value in taken):
            return None
        others = [value for value in taken if value is not None]
        if is_matmul:
            others += operands[1:]
        made = recreate_op(builder, op, others, (*rows, op.result_shape[1]))
        result = reshaped(builder, made, op.result_shape)
        self.batched[result] = made
        if wanted is not None:
            self.matmuls[result] = op, operands
        return result

    def _matmul_of_rows(
        self, builder: OpBuilder, op: CatalogueOp, value: SSAValue
    ) -> SSAValue | None:
        """Replaces a slice of rows of a rewritten matmul by a matmul of these rows.

        None for other slices."""
        if value not in self.matmuls:
            return None
        matmul, (left, *others) = self.matmuls[value]
        begins, ends, steps = (op.parameter(key) for key in ("begins", "ends", "step"))
        (count, width), shape = op.result_shape, shape_of(left.type)
        if (begins[1], steps[1], width) != (0, 1, matmul.result_shape[1]):
            return None
        rows = builder.emit(
            "slice_static",
            [left],
            tensor_type(element_of(left.type), (count, shape[1])),
            begins=[begins[0], 0],
            ends=[ends[0], shape[1]],
            step=[steps[0], 1],
        )
        return recreate_op(builder, matmul, [rows, *others], (count, width))

    def _arranged(self, builder: OpBuilder, value: SSAValue, rows: Shape) -> SSAValue | None:
        """Returns an operand with rows of this shape; None if it broadcasts along some of them."""
        batch, shape = self.batched.get(value), shape_of(value.type)
        if batch is not None and shape_of(batch.type)[:-1] == rows:
            return batch
        if prod(shape[:-1]) == 1:
            return value
        if len(shape) != 2 or shape[0] != prod(rows):
            return None
        return reshaped(builder, value, (*rows, shape[1]))

    def _row_per_matrix(
        self, builder: OpBuilder, op: CatalogueOp, value: SSAValue
    ) -> SSAValue | None:
        """Replaces a strided slice of one row per matrix by a slice of the batch.

        None for other slices."""
        batch = self.batched.get(value)
        if batch is None or len(shape := shape_of(batch.type)) != 3:
            return None
        begins, ends, steps = (op.parameter(key) for key in ("begins", "ends", "step"))
        count, rows, _ = shape
        if steps[0] != rows or begins[0] >= rows or ends[0] <= begins[0] + (count - 1) * rows:
            return None
        width = op.result_shape[1]
        taken = builder.emit(
            "slice_static",
            [batch],
            tensor_type(element_of(value.type), (count, 1, width)),
            begins=[0, begins[0], begins[1]],
            ends=[count, begins[0] + 1, ends[1]],
            step=[1, 1, steps[1]],
        )
        return reshaped(builder, taken, (count, width))
