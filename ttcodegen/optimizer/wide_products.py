"""Division of wide matmuls of one tile row into pieces with DRAM-sharded weights.

The core next to each DRAM bank multiplies the bank's share of the weights' columns
(`MatmulMultiCoreReuseMultiCastDRAMSharded`). A share of the 128,256 columns of logits does not fit
into L1; that of a piece does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import (
    element_of,
    normalized_data_type,
    shape_of,
    tensor_type,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import has_trait
from ttcodegen.ops.core.traits import Trait
from ttcodegen.optimizer.call import Candidate, LibraryCall, interleaved
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.optimizer.matmul_candidates import MatmulCandidates
from ttcodegen.optimizer.rewrites import recreate_op, rewrite_calls
from ttcodegen.transforms.const_eval import constant_values
from ttcodegen.transforms.rewriting import body_of, functions

MOST_PIECES = 8
"""Number of pieces above which concatenating their results costs what they save."""
_WIDE = 1024
"""Columns of tiles up to which no matmul is divided: its shares fit into L1."""


@dataclass(frozen=True)
class DivideWideProducts(ModulePass):
    """Divides matmuls with wide constant weights by columns if the cost model predicts a gain."""

    name = "ttnn-divide-wide-products"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pieces = _PieceCounts(CostModel.of(op))
        for function in functions(op):
            _divide(function, pieces)


def _divide(function: FuncOp, pieces: _PieceCounts) -> None:
    counts: dict[SSAValue, int] = {}
    wide = [op for op in body_of(function).ops if _is_wide(op)]
    if not wide:
        return
    constants = constant_values(function)
    for op in wide:
        assert isinstance(op, CatalogueOp)
        if op.operands[1] in constants and (count := pieces.count(op)) > 1:
            counts[op.results[0]] = count
    if not counts:
        return

    def divide(
        builder: OpBuilder, op: CatalogueOp, operands: Sequence[SSAValue]
    ) -> Sequence[SSAValue] | None:
        count = counts.get(op.results[0]) if len(op.results) == 1 else None
        return None if count is None else [_divided(builder, op, operands, count)]

    rewrite_calls(function, divide)


def _is_wide(op: object) -> bool:
    """Returns whether an op is a matmul of one tile row by a wide matrix."""
    return (
        isinstance(op, CatalogueOp)
        and has_trait(op, Trait.MATRIX_PRODUCT)
        and len(op.operands) == 2
        and not any(op.parameter(n) for n in ("transpose_a", "transpose_b", "activation", "dtype"))
        and len(op.shape("b")) == 2
        and len(op.shape("a")) > 1
        and prod(op.shape("a")[:-1]) <= TILE_SIDE
        and op.shape("b")[1] > _WIDE * TILE_SIDE
        and op.shape("b")[1] % TILE_SIDE == 0
    )


def _divided(
    builder: OpBuilder, op: CatalogueOp, operands: Sequence[SSAValue], count: int
) -> SSAValue:
    left, right = operands
    (inner, columns), shape = shape_of(right.type), op.result_shape
    width = columns // count
    made: list[SSAValue] = []
    for first in range(0, columns, width):
        weights = builder.emit(
            "slice_static",
            [right],
            tensor_type(element_of(right.type), (inner, width)),
            begins=[0, first],
            ends=[inner, first + width],
            step=[1, 1],
        )
        made.append(recreate_op(builder, op, [left, weights], (*shape[:-1], width)))
    type_ = tensor_type(element_of(op.results[0].type), shape)
    return builder.emit("concat", made, type_, dim=len(shape) - 1)


class _PieceCounts:
    """Chooser of the number of pieces of each matmul."""

    def __init__(self, model: CostModel) -> None:
        self._model = model
        self._matmuls = MatmulCandidates(model, True, model.grid)

    def count(self, op: CatalogueOp) -> int:
        """Returns the fastest number of pieces of a matmul; 1 to leave it undivided."""
        placed = [_placement(value) for value in (*op.operands, *op.results)]
        left, right, result = placed
        if left is None or right is None or result is None:
            return 1
        left = interleaved(left, "l1")
        best, least = 1, self._seconds(LibraryCall("matmul", (left, right), (result,)))
        columns = right.shape[-1]
        for count in range(2, MOST_PIECES + 1):
            if tiles_along(columns) % count:
                continue
            width = columns // count
            weights = right.with_(shape=(right.shape[0], width))
            made = result.with_(shape=(*result.shape[:-1], width))
            piece = LibraryCall("matmul", (left, weights), (made,))
            seconds = count * self._seconds(piece, banks_only=True)
            seconds += self._concat_seconds(made, result, count)
            if seconds < least:
                best, least = count, seconds
        return best

    def _seconds(self, call: LibraryCall, banks_only: bool = False) -> float:
        return self._matmuls.fastest_seconds(call, self._candidates(call, banks_only))

    def _candidates(self, call: LibraryCall, banks_only: bool) -> Iterator[Candidate]:
        yield from self._matmuls.from_banks(call)
        if not banks_only:
            yield from self._matmuls.of(call)

    def _concat_seconds(self, made: TensorPlacement, result: TensorPlacement, count: int) -> float:
        """Seconds of the concatenation of the pieces' results."""
        parts = (interleaved(made, "l1"),) * count
        attributes = {"dim": len(result.shape) - 1}
        joined = LibraryCall("concat", parts, (interleaved(result, "dram"),), attributes)
        copied = LibraryCall("clone", parts[:1], parts[:1])
        return self._model.seconds(joined) + count * self._model.seconds(copied)


def _placement(value: SSAValue) -> TensorPlacement | None:
    data_type = normalized_data_type(element_of(value.type))
    if data_type is None:
        return None
    return TensorPlacement(shape_of(value.type), data_type, Layout.TILE, "dram", "interleaved")
