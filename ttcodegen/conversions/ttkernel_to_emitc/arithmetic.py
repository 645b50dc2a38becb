"""Arithmetic in kernels: what each op is in C++, and whether a variable that it reads may be read
where the result is used."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith, memref, scf, tensor
from xdsl.dialects.builtin import IndexType, i1
from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.ttkernel.attributes import L1AddressType, NocAddressType
from ttcodegen.dialects.ttkernel.operation import TTKernelOp

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
"""What conditions of loops are computed with."""


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
    """The ops that use what a variable holds, themselves or in what is computed where they use it:
    all that has no name."""
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
