"""Results of pools that the library computes in slices."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttnn.placement import given_placement, placed_type
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.dialects import ttnn_op_classes
from ttcodegen.optimizer.call import bank_bytes, call_of
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.optimizer.programs.pool_slices import POOLS, is_sliced
from ttcodegen.optimizer.programs.windows import windows_of
from ttcodegen.systems.description import ChipDescription
from ttcodegen.transforms.rewriting import set_type


class SlicedPools(ModulePass):
    """Flattens the results of pools in slices, which are images in DRAM, not rows of channels.

    Runs after placements are decided, since only an image in DRAM is pooled in slices, if what is
    free of L1 does not suffice for all of it.
    """

    name = "ttnn-sliced-pools"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        model = CostModel.of(op)
        for each in list(op.walk()):
            if isinstance(each, CatalogueOp) and each.definition.short_name in POOLS:
                room = model.speed.usable_l1 - _taken(each, model.chip)
                if is_sliced(call_of(each), model.chip, room):
                    _flatten(each)


def _taken(pool: CatalogueOp, chip: ChipDescription) -> int:
    """Returns the bytes of L1 on each core of the tensors needed at a pool or after it."""
    block = pool.parent
    assert block is not None
    places = {op: place for place, op in enumerate(block.ops)}
    there = [*block.args, *(value for op in block.ops for value in op.results)]
    return sum(
        bank_bytes(placement, chip)
        for value in there
        if (placement := given_placement(value)) is not None
        and placement.buffer_type == "l1"
        and (isinstance(value.owner, Block) or places[value.owner] < places[pool])
        and any(places.get(use.operation, len(places)) >= places[pool] for use in value.uses)
    )


def _flatten(pool: CatalogueOp) -> None:
    """Makes an image the result of a pool, and gives users its rows where the result was."""
    (result,) = pool.results
    placement, block = given_placement(result), pool.parent
    assert placement is not None
    assert block is not None
    windows = windows_of(call_of(pool))
    made = placement.with_(
        layout=Layout.ROW_MAJOR, buffer_type="dram", memory_layout="interleaved", shards=None
    )
    after: Operation = pool

    def insert(op: Operation) -> None:
        nonlocal after
        block.insert_op_after(op, after)
        after = op

    builder = OpBuilder(ttnn_op_classes(), insert)
    builder.origin = pool
    rows = builder.emit("reshape_row_major", [result], placed_type(made), shape=list(made.shape))
    first = after
    if made != placement:
        rows = builder.emit("composite_to_layout", [rows], placed_type(placement))
    rows.name_hint = result.name_hint
    result.replace_uses_with_if(rows, lambda use: use.operation is not first)
    image = (windows.batch, *windows.out, windows.out_channels)
    set_type(result, placed_type(made.with_(shape=image)))
