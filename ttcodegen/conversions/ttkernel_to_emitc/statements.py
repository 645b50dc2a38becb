"""Statements of kernels in C++: arithmetic, tables, conditionals and profiler zones."""

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

# Statements that only kernels need, of the generated files: lookups in tables, conditional
# expressions, and loops that run while a condition holds.


def looked_up(body: EmitCBuilder, table: SSAValue, index: SSAValue, name: str | None) -> SSAValue:
    """`table[index]` of a constant table, in a variable if a name is given."""
    if name is not None:
        return body.subscript(table, index, "const uint32_t", name=name)
    subscript = SubscriptOp(table, [index], cpp_type("uint32_t"))
    body.insert(subscript)
    load = LoadOp(subscript.results[0])
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
    """`while (condition) { ... }`, written as `if (condition) do { ... } while (condition)`.

    The loops of EmitC test their condition only after the body."""
    (inner,) = body.if_(condition(body))
    statements, tail = Block(), Block()
    inner.insert(DoOp(statements, tail))
    write(inner.nested(statements))
    ending = inner.nested(tail)
    ending.insert(YieldOp(condition(ending)))
    inner.end_block()


# Arithmetic of kernels: the C++ of each op, and the analysis of whether a variable may be read
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
"""C++ operators, under the names of EmitC."""
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
"""Ops that only convert the type of a number."""
COMPUTED = (*OPERATORS, *FUNCTIONS, *CASTS, arith.CmpiOp, arith.SelectOp)
"""Ops that compute numbers from numbers."""
OF_CONDITIONS = (*COMPUTED, memref.LoadOp, tensor.ExtractOp)
"""Ops that compute loop conditions."""


def is_flag(value: SSAValue) -> bool:
    """Returns whether a value is a boolean."""
    return value.type == i1


def changes_before_use(load: memref.LoadOp) -> bool:
    """Returns whether a variable may be stored to between a load and the last use of its value."""
    users = _users(load)
    block = load.parent_block()
    unread = {user: block.find_ancestor_op_in_block(user) for user in users} if block else {}
    op = load.next_op
    while op is not None and unread:
        stores = [s for s in op.walk() if isinstance(s, memref.StoreOp) and s.memref is load.memref]
        # A store and a branch read the variable before they change it.
        if stores:
            reads_before = isinstance(op, memref.StoreOp | scf.IfOp)
            return any(user is not op or not reads_before for user in unread)
        unread = {user: ancestor for user, ancestor in unread.items() if ancestor is not op}
        op = op.next_op
    return False


def _users(load: memref.LoadOp) -> set[Operation]:
    """Ops that read a variable, directly or through unnamed expressions."""
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
    """Returns whether an address may be computed at its use: nothing with an effect runs before."""
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


# Zones of the device profiler: named parts of a kernel.
#
# `ttkernel.begin_zone` and `ttkernel.end_zone` are in the same block, properly nested. In C++ a
# zone is a scope, so values that are declared in it cannot be used after it.

BEGIN_ZONE = "ttkernel.begin_zone"
END_ZONE = "ttkernel.end_zone"
ZONE_HEADER = "tools/profiler/kernel_profiler.hpp"


def settle_zones(function: FuncOp) -> None:
    """Makes values that are used after their zone available outside of it.

    Pure arithmetic and variables move before the zone; other integers are stored to a variable.

    Raises:
        CompileError: if a value cannot be kept, or a zone has no end or no beginning.
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
        """Ops of the zone, with their positions."""
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
            if used and op in self.inside and not self._hoist(op):
                self._store(op, used)

    def _is_used_after(self, value: SSAValue) -> bool:
        return any(self._is_after(use.operation) for use in value.uses)

    def _is_after(self, user: Operation) -> bool:
        """Returns whether an op is outside of the zone."""
        return self.block.find_ancestor_op_in_block(user) not in self.inside

    def _hoist(self, op: Operation) -> bool:
        """Moves pure ops before the zone, with the ops they depend on; False if one is not pure."""
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

    def _store(self, op: Operation, values: Sequence[SSAValue]) -> None:
        """Stores integers to variables that are declared before the zone."""
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
