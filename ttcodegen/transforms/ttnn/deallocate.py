"""Deallocation of tensors after their last use, and removal of dead ops."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.dialect import LoadCachedOp, WhileLoopOp
from ttcodegen.dialects.ttnn.placement import placement_of
from ttcodegen.foundation.diagnostics import copy_source_offset
from ttcodegen.ops.core.definition import Memory, TTNNDefinition
from ttcodegen.ops.dialects import ttnn_op_classes
from ttcodegen.transforms.rewriting import body_of, erase_dead

# Gives tensors back to the device after their last use.

_VIEW = "ttmetal.view"


@dataclass(frozen=True)
class Deallocate(ModulePass):
    """Inserts `ttnn.deallocate` after the last use of every tensor that the function made.

    Tensors that may share a buffer (a reshape that is only a view) live until the last use of any
    of them: deallocating one takes the buffer from all (docs/library-rules.md). Arguments, cached
    constants and results stay.
    """

    name = "ttnn-deallocate"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if isinstance(function, FuncOp):
                _deallocate(body_of(function))


def _deallocate(block: Block) -> None:
    owner = buffer_owners(block)
    kept: set[SSAValue] = set(block.args)
    last_use: dict[SSAValue, Operation] = {}
    members: dict[SSAValue, list[SSAValue]] = {}
    for op in block.ops:
        if isinstance(op, ReturnOp):
            kept.update(owner[value] for value in op.operands)
        if isinstance(op, LoadCachedOp):
            kept.update(op.results)
        for value in (*op.operands, *op.results):
            last_use[owner[value]] = op
        for result in op.results:
            members.setdefault(owner[result], []).append(result)
    deallocate = ttnn_op_classes()["deallocate"]
    for root, op in last_use.items():
        if root in kept:
            continue
        after = op
        for value in members[root]:
            if placement_of(value).memory is Memory.DEVICE:
                made = deallocate.create(operands=[value])
                copy_source_offset(op, made)
                block.insert_op_after(made, after)
                after = made


def buffer_owners(block: Block) -> dict[SSAValue, SSAValue]:
    """For every value the first value whose buffer it may share; itself if it has its own."""
    owner: dict[SSAValue, SSAValue] = {argument: argument for argument in block.args}
    for op in block.ops:
        aliases = op.name == _VIEW or (
            isinstance(op, CatalogueOp)
            and isinstance(op.definition, TTNNDefinition)
            and op.definition.may_alias
        )
        for result in op.results:
            owner[result] = owner[op.operands[0]] if aliases else result
        if isinstance(op, WhileLoopOp):
            # A loop without an iteration gives what it was given.
            for result, value in zip(op.outputs, op.carried, strict=True):
                owner[result] = owner[value]
    return owner


# Drops TTNN ops whose results are unused.


@dataclass(frozen=True)
class RemoveDeadValues(ModulePass):
    """Drops what lowering left over, constants that became numbers in calls above all."""

    name = "remove-dead-values"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if isinstance(function, FuncOp):
                erase_dead(function)
