"""Hoisting of loops whose trip count is only known at run time into functions on the CPU."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp, UnitAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.operations.functions import (
    CPU_CALL,
    CPU_FUNCTION,
    FUNCTION_TYPE,
    is_loop_body,
)
from ttcodegen.dialects.ttcore.device import ONE_CHIP, declared_mesh
from ttcodegen.dialects.ttcore.loops import WhileLoopOp
from ttcodegen.foundation.diagnostics import copy_source_offset
from ttcodegen.naming.functions import cpu_function_symbol
from ttcodegen.naming.sources import name_in_text
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.transforms.functions import is_entry
from ttcodegen.transforms.rewriting import body_of, functions


@dataclass(frozen=True)
class CPUHoistLoops(ModulePass):
    """Outlines loops that are not unrolled to CPU functions, with the functions of their bodies.

    A launch of device programs is fixed before it begins: the host would read the condition and
    launch all programs of an iteration again. Loops on several devices are left in place."""

    name = "cpu-hoist-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        bodies = {f.sym_name.data: f for f in functions(op) if is_loop_body(f)}
        if not bodies:
            return
        for function in [each for each in functions(op) if is_entry(each)]:
            for inner in list(body_of(function).ops):
                if isinstance(inner, WhileLoopOp) and declared_mesh(inner) == ONE_CHIP:
                    _move(op, inner, bodies)


def _move(module: ModuleOp, loop: WhileLoopOp, bodies: Mapping[str, FuncOp]) -> None:
    for body in _called(loop, bodies):
        body.attributes[FUNCTION_TYPE] = CPU_FUNCTION
    passed = [value for value in dict.fromkeys(loop.operands) if splat_of(value) is None]
    block = Block(arg_types=[value.type for value in passed])
    mapping: dict[SSAValue, SSAValue] = dict(zip(passed, block.args, strict=True))
    for value, argument in mapping.items():
        argument.name_hint = name_in_text(value, "going" if value is loop.going else "state")
    for value in dict.fromkeys(loop.operands):
        if value not in mapping:
            assert isinstance(value.owner, Operation)
            block.add_op(value.owner.clone(mapping))
    inner = loop.clone(mapping)
    copy_source_offset(loop, inner)
    block.add_op(inner)
    block.add_op(ReturnOp(*inner.results))
    # Each loop has a body of its own.
    digest = hashlib.sha256(loop.callee.string_value().encode()).hexdigest()[:8]
    symbol = cpu_function_symbol("loop", digest)
    types = [value.type for value in passed], [value.type for value in loop.results]
    made = FuncOp(symbol, FunctionType.from_lists(*types), Region(block), "private")
    made.attributes[FUNCTION_TYPE] = CPU_FUNCTION
    module.body.block.add_op(made)
    call = CallOp(symbol, passed, types[1])
    call.attributes[CPU_CALL] = UnitAttr()
    call.location = loop.location
    copy_source_offset(loop, call)
    parent = loop.parent
    assert parent is not None
    parent.insert_op_before(call, loop)
    for old, new in zip(loop.results, call.results, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    parent.erase_op(loop)


def _called(loop: WhileLoopOp, bodies: Mapping[str, FuncOp]) -> Iterator[FuncOp]:
    """Yields the body of a loop and those of the loops in it."""
    body = bodies[loop.callee.string_value()]
    yield body
    for op in body_of(body).ops:
        if isinstance(op, WhileLoopOp):
            yield from _called(op, bodies)
