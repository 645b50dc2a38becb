"""Records how the arguments and results of functions are divided among the chips of the mesh.

What divides a tensor is an op of its function, which later stages make calls of mappers, programs
or exchanges of. Who calls the function sees its arguments only: they say it as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.functions import attributes_at, body_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import ONE_CHIP, declared_mesh
from ttcodegen.dialects.ttir.sharding import SHARE, Sharding, WantedSharding, undivided
from ttcodegen.ops.collectives.mesh_sharding import divided_dims, partitioned_dim
from ttcodegen.transforms.rewriting import functions


@dataclass(frozen=True)
class RecordChipShares(ModulePass):
    """Writes `ttcodegen.share` to arguments and results."""

    name = "ttcore-record-chip-shares"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if declared_mesh(op) == ONE_CHIP:
            return
        for function in functions(op):
            if not function.is_declaration:
                _record(function)


def _record(function: FuncOp) -> None:
    block = body_of(function)
    returned = block.last_op
    assert returned is not None
    arguments = [_share_of_argument(value) for value in block.args]
    results = [_share_of_result(value) for value in returned.operands]
    function.arg_attrs = _with(function.arg_attrs, arguments)
    function.res_attrs = _with(function.res_attrs, results)


def _with(
    given: ArrayAttr[DictionaryAttr] | None, shares: Sequence[Sharding | None]
) -> ArrayAttr[DictionaryAttr]:
    def said(share: Sharding | None) -> dict[str, ArrayAttr[DictionaryAttr]]:
        wanted = None if share is None else WantedSharding(share, (False,) * len(share))
        return {} if wanted is None else {SHARE: wanted.attribute()}  # pyright: ignore

    return ArrayAttr(
        [
            DictionaryAttr({**attributes_at(given, index), **said(share)})
            for index, share in enumerate(shares)
        ]
    )


def _share_of_argument(value: SSAValue) -> Sharding | None:
    """Sharding common to all users of an argument, or None if they disagree."""
    shares = {_share_made(use.operation, value) for use in value.uses}
    return shares.pop() if len(shares) == 1 else None if shares else _whole(value)


def _share_made(op: Operation, value: SSAValue) -> Sharding:
    """Sharding that an op gives a tensor replicated on all devices.

    Each device takes its part, which may be sharded further.
    """
    dims = divided_dims(op, to_parts=True)
    if dims is None:
        return _whole(value)
    share = _along(value, dims)
    while len(uses := list(op.results[0].uses)) == 1:
        op = uses[0].operation
        step = partitioned_dim(op)
        if step is None:
            break
        dim, axis = step
        share = tuple([(*a, axis) if at == dim else a for at, a in enumerate(share)])
    return share


def _share_of_result(value: SSAValue) -> Sharding:
    """Of which parts of the chips a result is put together."""
    owner = value.owner
    dims = divided_dims(owner, to_parts=False) if isinstance(owner, CatalogueOp) else None
    return _whole(value) if dims is None else _along(value, dims)


def _along(value: SSAValue, dims: Sequence[int]) -> Sharding:
    return tuple(
        [
            tuple([axis for axis, divided in enumerate(dims) if divided == dim])
            for dim in range(len(shape_of(value.type)))
        ]
    )


def _whole(value: SSAValue) -> Sharding:
    return undivided(len(shape_of(value.type)))
