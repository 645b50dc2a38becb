"""Results of pools that the library computes in slices."""

from __future__ import annotations

from collections.abc import Sequence

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
from ttcodegen.transforms.rewriting import body_of, functions, set_type


class SlicedPools(ModulePass):
    """Flattens the results of pools in slices, which are images in DRAM, not rows of channels.

    Runs after placements are decided, since only an image in DRAM is pooled in slices, if what is
    free of L1 does not suffice for all of it.
    """

    name = "ttnn-sliced-pools"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        model = CostModel.of(op)
        for function in functions(op):
            block = body_of(function)
            pools = [
                each
                for each in block.ops
                if isinstance(each, CatalogueOp) and each.definition.short_name in POOLS
            ]
            taken = _taken(block, pools, model.chip) if pools else {}
            for pool in pools:
                room = model.speed.usable_l1 - taken[pool]
                if is_sliced(call_of(pool), model.chip, room):
                    _flatten(pool)


def _taken(block: Block, pools: Sequence[Operation], chip: ChipDescription) -> dict[Operation, int]:
    """Returns the bytes of L1 on each core of the tensors from before each pool that are needed at
    it or later."""
    places = {op: place for place, op in enumerate(block.ops)}
    there = [*block.args, *(value for op in block.ops for value in op.results)]
    found = dict.fromkeys(pools, 0)
    for value in there:
        placement = given_placement(value)
        if placement is None or placement.buffer_type != "l1":
            continue
        begin = -1 if isinstance(value.owner, Block) else places[value.owner]
        end = max((places.get(use.operation, len(places)) for use in value.uses), default=-1)
        for pool in pools:
            if begin < places[pool] <= end:
                found[pool] += bank_bytes(placement, chip)
    return found


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
