"""Zones of the device profiler: parts of a kernel that have names.

`ttkernel.begin_zone` and `ttkernel.end_zone` are in the same block, one pair inside of another or
after it. In C++ a zone lasts as long as a scope, and its declarations end with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref
from xdsl.dialects.builtin import IndexType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.ttkernel.operation import TTKernelOp
from ttcodegen.foundation.diagnostics import CompileError

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
