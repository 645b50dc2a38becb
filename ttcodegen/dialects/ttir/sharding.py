"""Requested shardings of whole tensors over a mesh, where a module only annotates them.

`ttcore.sharding = [[0], [1, 0], []]` of an argument, a result or the op that makes a value has for
each dimension the axes of the mesh that it is divided along, the major one first. A -1 at the end
leaves it open whether it is divided along others as well. It changes nothing of what is computed:
`ttir-partition` decides by it what each chip computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from ttcodegen.dialects.operations.attribute_kinds import INTEGERS

SHARDING = "ttcore.sharding"
"""The attribute."""

SHARE = "ttcodegen.share"
"""Of an argument or a result, as `SHARDING` says it: what each chip takes of it, or gives to it."""

DIVIDED = "ttcodegen.divided"
"""Of an argument or a result whose parts the host gives to the chips of the mesh or takes from
them: the dimension that is divided along each axis, -1 for none. Its type has the shape of a
part."""

Sharding = tuple[tuple[int, ...], ...]
"""For each dimension of a tensor the axes of the mesh that it is divided along, the major one
first."""

_OPEN = -1


@dataclass(frozen=True)
class WantedSharding:
    """Requested sharding of a value; open dimensions may be sharded further."""

    axes: Sharding
    is_open: tuple[bool, ...]

    def attribute(self) -> Attribute:
        """The sharding as an attribute."""
        return ArrayAttr(
            [
                DenseArrayBase.from_list(i64, [*axes, *((_OPEN,) if is_open else ())])
                for axes, is_open in zip(self.axes, self.is_open, strict=True)
            ]
        )

    @staticmethod
    def of(attribute: Attribute | None, rank: int) -> WantedSharding | None:
        """The sharding that an attribute says; None if it says none for a tensor of that rank, or
        divides along an axis twice."""
        if not isinstance(attribute, ArrayAttr):
            return None
        listed = cast("ArrayAttr[Attribute]", attribute).data
        if len(listed) != rank:
            return None
        try:
            dimensions = [list(INTEGERS.decode(each)) for each in listed]
        except (ValueError, TypeError, AttributeError):
            return None
        divided = [tuple([axis for axis in axes if axis in (0, 1)]) for axes in dimensions]
        used = [axis for axes in divided for axis in axes]
        if len(set(used)) < len(used):
            return None
        return WantedSharding(tuple(divided), tuple([_OPEN in axes for axes in dimensions]))


def says_shardings(function: FuncOp) -> bool:
    """True if a function says how an argument, a result or a value in between is to be divided."""
    return any(
        SHARDING in each.data
        for dictionaries in (function.arg_attrs, function.res_attrs)
        for each in (dictionaries.data if dictionaries is not None else ())
    ) or any(SHARDING in op.attributes for op in function.walk())


def undivided(rank: int) -> Sharding:
    """The sharding of a tensor that all chips have."""
    return ((),) * rank


def common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """Number of leading axes that two shardings of a dimension share."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count
