"""Loops that are not unrolled: what is the same in each iteration, and copies of their bodies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import element_of, elements, numpy_name, shape_of
from ttcodegen.dialects.operations.functions import callee_of, is_loop_body
from ttcodegen.dialects.ttcore.loops import WhileLoopOp
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.naming.sources import name_in_text
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.dialects import ttir_op_classes
from ttcodegen.transforms.const_eval import computed_from, known_elements, overwritten_values
from ttcodegen.transforms.functions import keep_places
from ttcodegen.transforms.rewriting import body_of, erase, functions


@dataclass(frozen=True)
class HoistLoopInvariants(ModulePass):
    """Moves what is the same in each iteration of a loop before the loop, from the innermost on."""

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
        # What one loop captures, another one with the same body has not.
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
    """Puts copies of their bodies in place of loops that count, once for each iteration.

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
    """Puts copies of its body in place of a loop; gives the first op of them."""
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
                carried = [_settled(builder, values.get(v, v)) for v in op.operands]
                break
            copy = op.clone(values)
            keep_places(op, copy)
            block.insert_op_before(copy, loop)
    for result, value in zip(loop.outputs, carried, strict=True):
        result.replace_all_uses_with(value)
    erase(loop)
    return block.first_op if before is None else before.next_op


def _settled(builder: OpBuilder, value: SSAValue) -> SSAValue:
    """A counter as the number that it is, so that it is not counted up at run time."""
    if shape_of(value.type) or getattr(value.owner, "name", "") == "ttir.constant":
        return value
    known = known_elements(value, 1)
    if known is None:
        return value
    element = element_of(value.type)
    held = elements(element, (), known.astype(numpy_name(element)).tobytes())
    return builder.emit("constant", [], value.type, value=held)
