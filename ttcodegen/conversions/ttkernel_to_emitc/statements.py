"""Statements of kernels in C++: arithmetic, tables, choices and profiler zones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import arith, memref, scf, tensor
from xdsl.dialects.builtin import IndexType, UnitAttr, i1
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ttcodegen.dialects.ttkernel.attributes import L1AddressType, NocAddressType
from ttcodegen.dialects.ttkernel.operation import TTKernelOp
from ttcodegen.emitc.builder import EmitCBuilder
from ttcodegen.emitc.expressions import LoadOp, SubscriptOp, YieldOp
from ttcodegen.emitc.inlining import HELD
from ttcodegen.emitc.operators import ConditionalOp
from ttcodegen.emitc.spelling import cpp_type
from ttcodegen.emitc.statements import DoOp
from ttcodegen.foundation.diagnostics import CompileError

# What kernels have that EmitC has ops for, but no other generated file needs: tables, choices
# between numbers, and loops that go on as long as a condition holds.


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


# Arithmetic in kernels: what each op is in C++, and whether a variable that it reads may be read
# where the result is used.

OPERATORS: Mapping[type[Operation], str] = {
    arith.AddiOp: "add",
    arith.SubiOp: "sub",
    arith.MuliOp: "mul",
    arith.DivUIOp: "div",
    arith.DivSIOp: "div",
    arith.RemUIOp: "rem",
    arith.RemSIOp: "rem",
    arith.AndIOp: "bitwise_and",
    arith.OrIOp: "bitwise_or",
    arith.XOrIOp: "bitwise_xor",
    arith.ShLIOp: "bitwise_left_shift",
    arith.ShRUIOp: "bitwise_right_shift",
    arith.AddfOp: "add",
    arith.SubfOp: "sub",
    arith.MulfOp: "mul",
    arith.DivfOp: "div",
}
"""The operators of C++, as EmitC calls them."""
FUNCTIONS: Mapping[type[Operation], str] = {
    arith.MinUIOp: "std::min",
    arith.MaxUIOp: "std::max",
}
CASTS = (
    arith.IndexCastOp,
    arith.ExtUIOp,
    arith.ExtSIOp,
    arith.TruncIOp,
    arith.UIToFPOp,
    arith.SIToFPOp,
)
"""Ops that change the type of a number only."""
COMPUTED = (*OPERATORS, *FUNCTIONS, *CASTS, arith.CmpiOp, arith.SelectOp)
"""Ops that compute numbers of numbers."""
OF_CONDITIONS = (*COMPUTED, memref.LoadOp, tensor.ExtractOp)
"""Ops that compute loop conditions."""


def is_flag(value: SSAValue) -> bool:
    """True if a value is true or false."""
    return value.type == i1


def changes_before_use(load: memref.LoadOp) -> bool:
    """True if a variable may get another value before what was read of it is used for the last
    time."""
    users = _users(load)
    block = load.parent_block()
    left = {user: block.find_ancestor_op_in_block(user) for user in users} if block else {}
    op = load.next_op
    while op is not None and left:
        stores = [s for s in op.walk() if isinstance(s, memref.StoreOp) and s.memref is load.memref]
        # A store and a condition read it before they change it.
        if stores:
            reads_before = isinstance(op, memref.StoreOp | scf.IfOp)
            return any(user is not op or not reads_before for user in left)
        left = {user: place for user, place in left.items() if place is not op}
        op = op.next_op
    return False


def _users(load: memref.LoadOp) -> set[Operation]:
    """Ops that read a variable, directly or by unnamed expressions."""
    found: set[Operation] = set()
    pending: list[SSAValue] = [load.res]
    while pending:
        for use in pending.pop().uses:
            user = use.operation
            if isinstance(user, COMPUTED) and user.results[0].name_hint is None:
                pending.append(user.results[0])
            else:
                found.add(user)
    return found


def is_written_at_use(op: Operation) -> bool:
    """True if an address may be computed where it is used: nothing with an effect runs before."""
    result = op.results[0]
    uses = list(result.uses)
    if len(uses) != 1 or not isinstance(result.type, IndexType | NocAddressType | L1AddressType):
        return False
    following = op.next_op
    while following is not None and following is not uses[0].operation:
        if isinstance(following, TTKernelOp) and not following.results:
            return False
        if following.regions:
            return False
        following = following.next_op
    return following is not None


# Zones of the device profiler: parts of a kernel that have names.
#
# `ttkernel.begin_zone` and `ttkernel.end_zone` are in the same block, one pair inside of another
# or after it. In C++ a zone lasts as long as a scope, and its declarations end with it.

BEGIN_ZONE = "ttkernel.begin_zone"
END_ZONE = "ttkernel.end_zone"
ZONE_HEADER = "tools/profiler/kernel_profiler.hpp"


def settle_zones(function: FuncOp) -> None:
    """Lets nothing be used after the zone that it is computed in: arithmetic and variables move in
    front of the zone, other numbers go through a variable.

    Raises:
        CompileError: if that cannot be, or a zone has no end or no beginning.
    """
    ends: set[Operation] = set()
    for begin in [op for op in function.walk() if op.name == BEGIN_ZONE]:
        zone = _Zone(begin)
        zone.settle()
        ends.add(zone.end)
    for op in function.walk():
        if op.name == END_ZONE and op not in ends:
            raise CompileError("a zone of a kernel has no beginning in its block", op)


class _Zone:
    """A zone of a block."""

    def __init__(self, begin: Operation) -> None:
        block = begin.parent
        assert block is not None
        self.begin, self.block = begin, block
        self.inside: dict[Operation, int] = {}
        """The ops in it, with their positions."""
        depth, op = 1, begin.next_op
        while op is not None:
            depth += (op.name == BEGIN_ZONE) - (op.name == END_ZONE)
            if depth == 0:
                self.end = op
                return
            self.inside[op] = len(self.inside)
            op = op.next_op
        raise CompileError("a zone of a kernel has no end in its block", begin)

    def settle(self) -> None:
        for op in list(self.inside):
            used = [value for value in op.results if self._is_used_after(value)]
            if used and op in self.inside and not self._moves(op):
                self._keep(op, used)

    def _is_used_after(self, value: SSAValue) -> bool:
        return any(self._is_after(use.operation) for use in value.uses)

    def _is_after(self, user: Operation) -> bool:
        """True if a value defined in the zone is used outside of it."""
        return self.block.find_ancestor_op_in_block(user) not in self.inside

    def _moves(self, op: Operation) -> bool:
        """Moves arithmetic and variables before the zone, with what they are computed from."""
        pending, found = [op], {op}
        while pending:
            each = pending.pop()
            is_pure = isinstance(each, TTKernelOp) and each.definition.pure
            if not (is_pure or each.name.startswith("arith.") or isinstance(each, memref.AllocaOp)):
                return False
            for owner in (operand.owner for operand in each.operands):
                if isinstance(owner, Operation) and owner in self.inside and owner not in found:
                    found.add(owner)
                    pending.append(owner)
        for each in sorted(found, key=self.inside.__getitem__):
            each.detach()
            self.block.insert_op_before(each, self.begin)
            del self.inside[each]
        return True

    def _keep(self, op: Operation, values: Sequence[SSAValue]) -> None:
        """Keeps numbers in variables that are declared before the zone."""
        for value in values:
            if not isinstance(value.type, IndexType):
                raise CompileError("a value defined in a zone of a kernel is used after it", op)
            slot = memref.AllocaOp.get(value.type, shape=[])
            slot.memref.name_hint, value.name_hint = value.name_hint, None
            load = memref.LoadOp.get(slot.memref, [])
            value.replace_uses_with_if(load.res, lambda use: self._is_after(use.operation))
            self.block.insert_op_before(slot, self.begin)
            self.block.insert_op_after(memref.StoreOp.get(value, slot.memref, []), op)
            self.block.insert_op_after(load, self.end)
