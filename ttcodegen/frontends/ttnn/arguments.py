"""Argument attributes of TTNN functions."""

from __future__ import annotations

from functools import partial

from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, BlockArgument, Operation, Use
from xdsl.rewriter import Rewriter

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import TTNNLayoutAttr, placed_type
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.dialects import ttnn_op_classes


def shard_arguments(module: ModuleOp) -> None:
    """Lets the functions that a program offers divide their sharded arguments among cores
    themselves: callers give whole tensors in DRAM."""
    called = {op.callee.string_value() for op in module.walk() if isinstance(op, CallOp)}
    for function in module.ops:
        if isinstance(function, FuncOp) and function.sym_name.data not in called:
            _shard_arguments(function)


def _shard_arguments(function: FuncOp) -> None:
    """Caches that calls overwrite stay as they are: the caller has to see what is in them."""
    if not function.body.blocks:
        return
    (block, *_) = function.body.blocks
    for argument in block.args:
        encoding = getattr(argument.type, "encoding", None)
        if not isinstance(encoding, TTNNLayoutAttr) or encoding.data.shards is None:
            continue
        if any(_overwrites(use.operation, argument) for use in argument.uses):
            continue
        placement = encoding.data

        def insert(made: Operation) -> None:
            assert block.first_op is not None
            block.insert_op_before(made, block.first_op)

        builder = OpBuilder(ttnn_op_classes(), insert)
        sharded = builder.emit("composite_to_layout", [argument], placed_type(placement))
        sharded.name_hint = argument.name_hint
        argument.replace_uses_with_if(sharded, partial(_is_other, sharded.owner))
        whole = placement.with_(buffer_type="dram", memory_layout="interleaved", shards=None)
        Rewriter.replace_value_with_new_type(argument, placed_type(whole))
    function.function_type = FunctionType.from_lists(
        [argument.type for argument in block.args], function.function_type.outputs.data
    )


def _is_other(made: Operation | Block, use: Use) -> bool:
    """True if a use is not that of the op that was made."""
    return use.operation is not made


def _overwrites(op: Operation, value: BlockArgument) -> bool:
    """True if a call writes to a tensor."""
    if not isinstance(op, CatalogueOp) or op.definition.in_place is None:
        return False
    return op.optional_operand(op.definition.in_place) is value
