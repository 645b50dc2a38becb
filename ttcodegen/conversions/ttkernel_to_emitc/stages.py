"""The stages of a kernel, which become functions where it would be too long for one.

The builder of a kernel declares which ops of a block are a stage (`KernelBuilder.stage`). What a
stage uses of the kernel around it is declared at file scope if it is known when the kernel is
compiled; the rest are the parameters of its function.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import MemRefType, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ttcodegen.conversions.ttkernel_to_emitc.arithmetic import COMPUTED
from ttcodegen.dialects.ttkernel.operation import STAGE, STAGE_PURPOSE, TTKernelOp
from ttcodegen.dialects.ttmetal.op_names import NAMED_ARGUMENT
from ttcodegen.ops.core.call_parameters import MOST_UNNAMED

LONGEST_KERNEL = 90
"""The most lines, about, of a kernel that is one function."""

_STEPS = frozenset({"ttkernel.tile_regs_acquire", "ttkernel.tile_regs_release"})
"""Ops with an empty line before or after them."""
_LABELLED_LINES = 4
"""Of a call whose arguments have labels."""


@dataclass(frozen=True)
class Stage:
    """A stage of a kernel, to be written as a function."""

    name: str
    purpose: str
    ops: tuple[Operation, ...]
    """Those of a block."""
    repeated: tuple[Operation, ...]
    """Constants and arithmetic without a name that it uses: they are written where they are
    used, in each function."""
    captured: tuple[SSAValue, ...]
    """What else it uses, in the order of definition."""


def stages_of(function: FuncOp) -> dict[Operation, Stage]:
    """The stages of a kernel that is too long for one function, by their first ops."""
    if _lines(function) <= LONGEST_KERNEL:
        return {}
    order = {op: number for number, op in enumerate(function.walk())}
    found: dict[Operation, Stage] = {}
    for block in _blocks(function):
        for name, group in groupby(block.ops, lambda op: op.attributes.get(STAGE)):
            if isinstance(name, StringAttr):
                stage = _stage(name.data, tuple(group), order)
                if stage is not None:
                    found[stage.ops[0]] = stage
    return found


def _blocks(function: FuncOp) -> Iterator[Block]:
    yield from function.body.blocks
    for op in function.body.walk():
        for region in op.regions:
            yield from region.blocks


def _stage(name: str, ops: tuple[Operation, ...], order: Mapping[Operation, int]) -> Stage | None:
    """The stage; None if something uses or changes a value across its borders, which no function
    could."""
    walked = [each for op in ops for each in op.walk()]
    inside = frozenset(walked)
    results = (result for op in ops for result in op.results)
    if any(use.operation not in inside for result in results for use in result.uses):
        return None
    repeated: dict[Operation, None] = {}
    captured: dict[SSAValue, None] = {}
    for op in walked:
        for operand in op.operands:
            _capture(operand, inside, repeated, captured)
    if any(isinstance(value.type, MemRefType) for value in captured):
        return None
    purpose = ops[0].attributes.get(STAGE_PURPOSE)
    text = purpose.data if isinstance(purpose, StringAttr) else ""
    captured_in_order = sorted(captured, key=lambda value: order[_definition(value)])
    return Stage(name, text, ops, tuple(repeated), tuple(captured_in_order))


def _definition(value: SSAValue) -> Operation:
    """The op that computes a value, or the loop that counts it."""
    owner = value.owner.parent_op() if isinstance(value.owner, Block) else value.owner
    assert owner is not None
    return owner


def _capture(
    value: SSAValue,
    inside: Collection[Operation],
    repeated: dict[Operation, None],
    captured: dict[SSAValue, None],
) -> None:
    """Adds a value that a stage uses to what it repeats or captures, unless it computes it."""
    owner = value.owner
    if isinstance(owner, Block):
        if owner.parent_op() not in inside:
            captured[value] = None
    elif owner not in inside:
        if _is_written_at_use(owner):
            for operand in owner.operands:
                _capture(operand, inside, repeated, captured)
            repeated[owner] = None
        else:
            captured[value] = None


def _is_written_at_use(op: Operation) -> bool:
    return isinstance(op, (*COMPUTED, arith.ConstantOp, arith.BitcastOp)) and (
        op.results[0].name_hint is None
    )


def _lines(function: FuncOp) -> int:
    """About how many lines the kernel has as one function."""
    total = 0
    for op in function.body.walk():
        if isinstance(op, scf.ForOp | scf.IfOp | scf.WhileOp):
            total += 3
        elif op.name == NAMED_ARGUMENT or op.name in _STEPS:
            total += 2
        elif isinstance(op, TTKernelOp):
            total += _LABELLED_LINES if len(op.operands) > MOST_UNNAMED else 1
        elif op.results and op.results[0].name_hint is not None:
            total += 1
    return total
