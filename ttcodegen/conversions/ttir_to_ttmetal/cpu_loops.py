"""Hoisting of loops whose trip count is only known at run time into functions on the CPU."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.conversions.ttir_to_ttmetal.cpu_hoist import (
    cloned_into,
    passed_operands,
    replace_by_call,
)
from ttcodegen.dialects.operations.functions import (
    CPU_FUNCTION,
    FUNCTION_TYPE,
    is_loop_body,
)
from ttcodegen.dialects.ttcore.device import ONE_CHIP, declared_mesh
from ttcodegen.dialects.ttcore.loops import WhileLoopOp
from ttcodegen.naming.functions import cpu_function_symbol
from ttcodegen.naming.sources import name_in_text
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
    passed = passed_operands(loop)
    block = Block(arg_types=[value.type for value in passed])
    mapping: dict[SSAValue, SSAValue] = dict(zip(passed, block.args, strict=True))
    for value, argument in mapping.items():
        argument.name_hint = name_in_text(value, "going" if value is loop.going else "state")
    inner = cloned_into(block, loop, mapping)
    block.add_op(ReturnOp(*inner.results))
    # Each loop has a body of its own.
    digest = hashlib.sha256(loop.callee.string_value().encode()).hexdigest()[:8]
    symbol = cpu_function_symbol("loop", digest)
    types = [value.type for value in passed], [value.type for value in loop.results]
    made = FuncOp(symbol, FunctionType.from_lists(*types), Region(block), "private")
    made.attributes[FUNCTION_TYPE] = CPU_FUNCTION
    module.body.block.add_op(made)
    replace_by_call(loop, symbol, passed)


def _called(loop: WhileLoopOp, bodies: Mapping[str, FuncOp]) -> Iterator[FuncOp]:
    """Yields the body of a loop and those of the loops in it."""
    body = bodies[loop.callee.string_value()]
    yield body
    for op in body_of(body).ops:
        if isinstance(op, WhileLoopOp):
            yield from _called(op, bodies)
