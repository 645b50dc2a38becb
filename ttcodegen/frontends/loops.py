"""Loops whose trip count is only known at run time: their bodies as functions of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerType, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.dialects.operations.functions import CONDITIONAL, COUNTED, LOOP_BODY
from ttcodegen.dialects.ttcore.loops import WhileLoopOp
from ttcodegen.naming.sources import name_in_text
from ttcodegen.transforms.rewriting import is_repeatable


@dataclass(frozen=True)
class OutlinedLoop:
    """A loop: the function that is called in each iteration, and the op that calls it."""

    function: FuncOp
    call: WhileLoopOp
    results: tuple[SSAValue, ...]
    """The tensors after the last iteration, in the order of those before the first."""


def outline_loop(
    name: str,
    block: Block,
    going: SSAValue | None,
    initial: Sequence[SSAValue],
    returned: Sequence[SSAValue],
    trip_count: int | None = None,
) -> OutlinedLoop:
    """Makes a function of the body of a loop.

    What an iteration takes of the function around the loop becomes an argument, and so does what
    no iteration changes; constants are made in the body, where passes can fuse them.

    Args:
        name: the name of the function.
        block: an iteration, without a terminator; its arguments are the carried tensors.
        going: whether there is an iteration, a tensor of one element; None if the trip count is
            given.
        initial: the carried tensors before the first iteration.
        returned: whether there is another iteration, unless the trip count is given, and what that
            takes.
        trip_count: the number of iterations, if it is known.
    """
    again, following = list(returned[: -len(initial)]), returned[-len(initial) :]
    pairs = list(zip(block.args, initial, following, strict=True))
    for argument, value, next_value in pairs:
        if next_value is argument:
            argument.replace_all_uses_with(value)
    carried = [pair for pair in pairs if pair[2] is not pair[0]]
    kept = [argument for argument, _, _ in carried]
    for argument in [each for each in block.args if each not in kept]:
        block.erase_arg(argument)
    results: list[SSAValue] = [*again, *(value for _, _, value in carried)]
    block.add_op(ReturnOp(*results))
    for argument, value, _ in carried:
        argument.name_hint = name_in_text(argument, name_in_text(value, _kind(argument)))
    captured = _capture(block)
    names = [name_in_text(argument, f"arg{index}") for index, argument in enumerate(block.args)]
    function = FuncOp(
        name,
        ([argument.type for argument in block.args], [value.type for value in results]),
        Region(block),
        "private",
        arg_attrs=ArrayAttr([DictionaryAttr({"ttir.name": StringAttr(each)}) for each in names]),
    )
    function.attributes[LOOP_BODY] = CONDITIONAL if trip_count is None else COUNTED
    call = WhileLoopOp(name, going, [value for _, value, _ in carried], captured, trip_count)
    for result, (argument, _, _) in zip(call.outputs, carried, strict=True):
        result.name_hint = argument.name_hint
    made = dict(zip(kept, call.outputs, strict=True))
    after = tuple(made.get(argument, value) for argument, value, _ in pairs)
    return OutlinedLoop(function, call, after)


def _kind(value: SSAValue) -> str:
    """A name for a carried tensor that has none: loops count in integers."""
    is_counter = not shape_of(value.type) and isinstance(element_of(value.type), IntegerType)
    return "counter" if is_counter else "state"


def _capture(block: Block) -> list[SSAValue]:
    """The values of the function around a block that its ops use, which become its last arguments;
    constants are copied instead."""
    arguments: dict[SSAValue, SSAValue] = {}
    copies: dict[SSAValue, SSAValue] = {}
    first = block.first_op
    assert first is not None
    for op in list(block.ops):
        for index, operand in enumerate(op.operands):
            owner = operand.owner
            if owner is block or (isinstance(owner, Operation) and owner.parent is block):
                continue
            inner = arguments.get(operand) or copies.get(operand)
            if inner is None and isinstance(owner, Operation) and _is_constant(owner):
                copy = owner.clone()
                block.insert_op_before(copy, first)
                inner = copies[operand] = copy.results[0]
                inner.name_hint = operand.name_hint
            elif inner is None:
                inner = arguments[operand] = block.insert_arg(operand.type, len(block.args))
                inner.name_hint = operand.name_hint
            op.operands[index] = inner
    return list(arguments)


def _is_constant(op: Operation) -> bool:
    return not op.operands and is_repeatable(op) and len(op.results) == 1
