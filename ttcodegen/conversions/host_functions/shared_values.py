"""Values that several layers share, such as masks and tables of angles, computed before the layers.

The lowering puts what brings a value into its form where it is needed first: in the middle of the
first layer, which then differs from all others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, pairwise
from math import prod

from xdsl.ir import SSAValue

from ttcodegen.conversions.host_functions.recording import Statement
from ttcodegen.conversions.host_functions.splitting import last_uses, made_by
from ttcodegen.dialects.ttcore.tile import TILE_FORMATS
from ttcodegen.dialects.ttnn.placement import has_placement, placement_of

LEAST_DISTANCE = 10
"""The minimum number of statements between the first and the last use of a value of layers."""
MOST_STATEMENTS = 8
"""The most statements that such a value is made by."""


def shared_first(
    statements: Sequence[Statement], returned: Sequence[SSAValue]
) -> list[Statement] | None:
    """The statements with what makes shared values at the start; None if nothing moves, or if it
    took more memory at any time than the original order does."""
    moved = set[int]().union(*shared_values(statements).values())
    order = sorted(moved) + [index for index in range(len(statements)) if index not in moved]
    if order == list(range(len(statements))):
        return None
    done = [statements[index] for index in order]
    return done if _peak(done, returned) <= _peak(statements, returned) else None


def shared_values(statements: Sequence[Statement]) -> dict[SSAValue, set[int]]:
    """The values that are made of few statements and used far apart, each with the statements that
    make it."""
    made_at = made_by(statements)
    joined = {
        index
        for second, (one, other) in enumerate(pairwise(statements), start=1)
        if one.op is other.op
        for index in (second - 1, second)
    }
    users: dict[SSAValue, list[int]] = {}
    for index, statement in enumerate(statements):
        for value in dict.fromkeys(statement.uses):
            users.setdefault(value, []).append(index)
    # What is written in place has another value before and after.
    written = {value for each in statements if not each.results for value in each.uses}
    found: dict[SSAValue, set[int]] = {}
    for value, index in made_at.items():
        uses = users.get(value, ())
        if len(uses) > 1 and uses[-1] - uses[0] >= LEAST_DISTANCE:
            makers = _makers(index, statements, made_at, joined)
            if makers is not None and not any(
                use in written for each in makers for use in statements[each].uses
            ):
                found[value] = makers
    return found


def _makers(
    index: int,
    statements: Sequence[Statement],
    made_at: Mapping[SSAValue, int],
    joined: Collection[int],
) -> set[int] | None:
    """The statements that a value needs to be made; None if they are many, make it of nothing, as
    random numbers are, or take one of several results of a call (`joined`): the first such
    statement writes the call for those after it."""
    found: set[int] = set()
    pending = [index]
    while pending:
        each = pending.pop()
        if each in found:
            continue
        found.add(each)
        statement = statements[each]
        if len(found) > MOST_STATEMENTS or not statement.uses or len(statement.results) != 1:
            return None
        if each in joined:
            return None
        pending += [made_at[value] for value in statement.uses if value in made_at]
    return found


def _peak(statements: Sequence[Statement], returned: Sequence[SSAValue]) -> int:
    """The most bits of the device that the results of statements take at a time."""
    made_at = made_by(statements)
    last_use = last_uses(returned, statements, made_at)
    changes = [0] * (len(statements) + 2)
    for value, index in made_at.items():
        if not has_placement(value):
            continue
        placement = placement_of(value)
        size = prod(placement.shape) * TILE_FORMATS[placement.data_type.mlir].bits
        changes[index] += size
        changes[max(last_use.get(value, index), index) + 1] -= size
    return max(accumulate(changes))
