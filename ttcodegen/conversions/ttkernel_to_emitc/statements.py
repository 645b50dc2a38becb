"""What kernels have that EmitC has ops for, but no other generated file needs: tables, choices
between numbers, and loops that go on as long as a condition holds."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, SSAValue

from ttcodegen.emitc.builder import EmitCBuilder
from ttcodegen.emitc.expressions import LoadOp, SubscriptOp, YieldOp
from ttcodegen.emitc.inlining import HELD
from ttcodegen.emitc.operators import ConditionalOp
from ttcodegen.emitc.spelling import cpp_type
from ttcodegen.emitc.statements import DoOp


def looked_up(body: EmitCBuilder, table: SSAValue, index: SSAValue, name: str | None) -> SSAValue:
    """`table[index]` of a table of constants, in a variable if it has a name."""
    if name is not None:
        return body.subscript(table, index, "const uint32_t", name=name)
    place = SubscriptOp(table, [index], cpp_type("uint32_t"))
    body.insert(place)
    load = LoadOp(place.results[0])
    load.attributes[HELD] = UnitAttr()
    body.insert(load)
    return load.results[0]


def chosen(body: EmitCBuilder, condition: SSAValue, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """`condition ? lhs : rhs`."""
    op = ConditionalOp(condition, lhs, rhs)
    body.insert(op)
    return op.results[0]


def repeated(
    body: EmitCBuilder,
    condition: Callable[[EmitCBuilder], SSAValue],
    write: Callable[[EmitCBuilder], None],
) -> None:
    """`while (condition) { ... }`: EmitC has only loops that ask after their body, so it is asked
    once before."""
    (inner,) = body.if_(condition(body))
    statements, asked = Block(), Block()
    inner.insert(DoOp(statements, asked))
    write(inner.nested(statements))
    ending = inner.nested(asked)
    ending.insert(YieldOp(condition(ending)))
    inner.end_block()
