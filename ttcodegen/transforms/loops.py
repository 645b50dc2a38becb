"""Loops of calls: outlined bodies, hoisted invariants, and loops that are unrolled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerType,
    ModuleOp,
    StringAttr,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import element_of, elements, numpy_name, shape_of
from ttcodegen.dialects.operations.functions import (
    CONDITIONAL,
    COUNTED,
    LOOP_BODY,
    callee_of,
    is_loop_body,
)
from ttcodegen.dialects.ttcore.loops import WhileLoopOp
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.naming.sources import name_in_text
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.dialects import ttir_op_classes
from ttcodegen.transforms.const_eval import computed_from, known_elements, overwritten_values
from ttcodegen.transforms.functions import copy_locations
from ttcodegen.transforms.rewriting import body_of, erase, functions, is_repeatable


@dataclass(frozen=True)
class OutlinedLoop:
    """A loop: the function of its body, and the op that calls it in each iteration."""

    function: FuncOp
    call: WhileLoopOp
    results: tuple[SSAValue, ...]
    """Tensors after the last iteration, in the order of the initial ones."""


def outline_loop(
    name: str,
    block: Block,
    going: SSAValue | None,
    initial: Sequence[SSAValue],
    returned: Sequence[SSAValue],
    trip_count: int | None = None,
) -> OutlinedLoop:
    """Outlines the body of a loop as a private function.

    Values captured from the enclosing function and carried tensors that no iteration changes become
    captured arguments; constants are cloned into the body, where passes can fuse them.

    Args:
        name: the name of the function.
        block: an iteration, without a terminator; its arguments are the carried tensors.
        going: condition of the first iteration, a tensor of one element; None if the trip count is
            given.
        initial: the carried tensors before the first iteration.
        returned: the condition of the next iteration, unless the trip count is given, then the
            carried tensors for it.
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
    """Returns a name for an unnamed carried tensor: integer scalars are counters."""
    is_counter = not shape_of(value.type) and isinstance(element_of(value.type), IntegerType)
    return "counter" if is_counter else "state"


def _capture(block: Block) -> list[SSAValue]:
    """Turns values of the enclosing function that a block uses into trailing block arguments.

    Constants are cloned instead. Returns the captured values.
    """
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


@dataclass(frozen=True)
class HoistLoopInvariants(ModulePass):
    """Moves loop invariants before their loops, innermost loops first."""

    name = "ttnn-hoist-loop-invariants"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        bodies = _bodies(op)
        if bodies:
            callers = Counter(callee_of(inner) for inner in op.walk())
            for function in functions(op):
                if not is_loop_body(function):
                    _hoist_from_loops(function, bodies, callers)


def _bodies(module: ModuleOp) -> dict[str, FuncOp]:
    return {f.sym_name.data: f for f in functions(module) if is_loop_body(f)}


def _hoist_from_loops(
    function: FuncOp, bodies: Mapping[str, FuncOp], callers: Mapping[str | None, int]
) -> None:
    for loop in [op for op in body_of(function).ops if isinstance(op, WhileLoopOp)]:
        name = loop.callee.string_value()
        _hoist_from_loops(bodies[name], bodies, callers)
        # Loops that share a body have different captured values.
        if callers[name] == 1:
            _hoist_invariants(loop, bodies[name])


def _hoist_invariants(loop: WhileLoopOp, body: FuncOp) -> None:
    block = body_of(body)
    outer = loop.parent
    assert outer is not None
    carried = len(loop.outputs)
    captured = set(block.args[carried:]) - overwritten_values(block)
    invariant = computed_from(block, captured)
    hoisted = [op for op in block.ops if op.results and op.results[0] in invariant]
    if not hoisted:
        return
    outside: dict[SSAValue, SSAValue] = dict(zip(block.args[carried:], loop.captured, strict=True))
    inside = set(hoisted)
    needed = [
        result
        for op in hoisted
        for result in op.results
        if any(use.operation not in inside for use in result.uses)
    ]
    uses = {result: [u for u in result.uses if u.operation not in inside] for result in needed}
    for op in hoisted:
        op.detach()
        op.operands = [outside.get(value, value) for value in op.operands]
        outer.insert_op_before(op, loop)
    arguments = [block.insert_arg(each.type, len(block.args)) for each in needed]
    for result, argument in zip(needed, arguments, strict=True):
        argument.name_hint = result.name_hint
        for use in uses[result]:
            use.operation.operands[use.index] = argument
    inputs = [*loop.captured, *needed]
    kept = [a.first_use is not None for a in block.args[carried:]]
    names = [name_in_text(a, f"arg{index}") for index, a in enumerate(block.args)]
    for argument, is_kept in zip(list(block.args[carried:]), kept, strict=True):
        if not is_kept:
            block.erase_arg(argument)
    called = [name for name, used in zip(names, [True] * carried + kept, strict=True) if used]
    body.arg_attrs = ArrayAttr([DictionaryAttr({"ttir.name": StringAttr(n)}) for n in called])
    outputs = list(body.function_type.outputs)
    body.function_type = FunctionType.from_lists([a.type for a in block.args], outputs)
    captures = [value for value, is_kept in zip(inputs, kept, strict=True) if is_kept]
    loop.capture(captures)


@dataclass(frozen=True)
class UnrollLoops(ModulePass):
    """Unrolls loops with a known trip count.

    Raises CompileError if there would be more than 200,000 ops.
    """

    name = "ttir-unroll-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _unroll(op)


def _unroll(module: ModuleOp) -> None:
    bodies = _bodies(module)
    made = 0
    for function in functions(module):
        op = function.body.block.first_op if function.body.blocks else None
        while op is not None:
            following = op.next_op
            if isinstance(op, WhileLoopOp) and op.trips is not None:
                body = bodies[op.callee.string_value()].body.block
                made += op.trips * len(body.ops)
                if made > _MOST_UNROLLED:
                    raise CompileError(
                        f"the copies of the body of the loop have more than {_MOST_UNROLLED} ops",
                        op,
                        remedy="make the loop shorter, or compile its body alone",
                    )
                following = _unroll_loop(op, body) or following
            op = following
    called = {callee_of(op) for op in module.walk()}
    for name, body in bodies.items():
        if name not in called:
            erase(body)


_MOST_UNROLLED = 200_000


def _unroll_loop(loop: WhileLoopOp, body: Block) -> Operation | None:
    """Replaces a loop by copies of its body; returns the first op of them."""
    block, before = loop.parent, loop.prev_op
    assert block is not None
    assert loop.trips is not None
    carried, captured = list(loop.carried), list(loop.captured)
    builder = OpBuilder(ttir_op_classes(), lambda op: block.insert_op_before(op, loop))
    builder.origin = loop
    for _ in range(loop.trips):
        values: dict[SSAValue, SSAValue] = dict(zip(body.args, [*carried, *captured], strict=True))
        for op in body.ops:
            if isinstance(op, ReturnOp):
                carried = [_fold_counter(builder, values.get(v, v)) for v in op.operands]
                break
            copy = op.clone(values)
            copy_locations(op, copy)
            block.insert_op_before(copy, loop)
    for result, value in zip(loop.outputs, carried, strict=True):
        result.replace_all_uses_with(value)
    erase(loop)
    return block.first_op if before is None else before.next_op


def _fold_counter(builder: OpBuilder, value: SSAValue) -> SSAValue:
    """Folds a scalar of known value into a constant: counters need no computation at run time."""
    if shape_of(value.type) or getattr(value.owner, "name", "") == "ttir.constant":
        return value
    known = known_elements(value, 1)
    if known is None:
        return value
    element = element_of(value.type)
    held = elements(element, (), known.astype(numpy_name(element)).tobytes())
    return builder.emit("constant", [], value.type, value=held)
