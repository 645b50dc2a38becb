"""Chains of reshapes and permutes, taken as one movement of elements.

A reshape divides dimensions and joins them, a permute puts them in another order. What no op of a
chain divides further is a unit here: the chain is known by the order of its units, and often one
permute, or one between two reshapes, does the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.transforms.rewriting import PatternSet, Rewriter

CHAINS = PatternSet()

_MOVES = ("ttir.reshape", "ttir.permute")
_LONGEST = 16


@CHAINS.on(*_MOVES)
def shorten_moves(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """As few reshapes and permutes as do what three or more in a row do."""
    chain = [op]
    while len(chain) < _LONGEST:
        before = rewriter.sole(chain[-1].operands[0], *_MOVES)
        if before is None:
            break
        chain.append(before)
    source = chain[-1].operands[0]
    if len(chain) < 3 or 0 in op.result_shape:
        return None
    units = _Units(shape_of(source.type))
    if not all(units.move(each) for each in reversed(chain)):
        return None
    steps = units.steps(op.result_shape)
    if len(steps) >= len(chain):
        return None
    value = source
    for step in steps:
        if isinstance(step, _Permute):
            value = rewriter.permute(value, step.places)
        else:
            value = rewriter.reshape(value, step)
    return value


@dataclass(frozen=True)
class _Permute:
    places: list[int]


_Shape = Sequence[int]


@dataclass
class _Units:
    """The units of a tensor, and which of them its dimensions are now made of."""

    shape: _Shape
    _sizes: list[int] = field(default_factory=list[int])
    _source: list[list[int]] = field(default_factory=list[list[int]])
    """The units of each dimension of the source."""
    _now: list[list[int]] = field(default_factory=list[list[int]])

    def __post_init__(self) -> None:
        for size in self.shape:
            self._source.append([] if size == 1 else [len(self._sizes)])
            if size != 1:
                self._sizes.append(size)
        self._now = [list(units) for units in self._source]

    def move(self, op: CatalogueOp) -> bool:
        """Moves the elements as an op does; False if it joins a part of a unit with another."""
        if op.name == "ttir.permute":
            self._now = [self._now[axis] for axis in op.parameter("permutation")]
            return True
        left = [unit for units in self._now for unit in units]
        made: list[list[int]] = []
        for size in op.result_shape:
            taken: list[int] = []
            while (have := self._size(taken)) != size:
                unit = left.pop(0)
                if have * self._sizes[unit] > size:
                    if size % have or self._sizes[unit] % (size // have):
                        return False
                    left.insert(0, self._divide(unit, size // have))
                taken.append(unit)
            made.append(taken)
        self._now = made
        return True

    def _divide(self, unit: int, outer: int) -> int:
        """Leaves the outer part of a unit what it was; gives the inner part."""
        inner = len(self._sizes)
        self._sizes.append(self._sizes[unit] // outer)
        self._sizes[unit] = outer
        for units in self._source:
            if unit in units:
                units.insert(units.index(unit) + 1, inner)
        return inner

    def _size(self, units: Sequence[int]) -> int:
        return prod(self._sizes[unit] for unit in units)

    def steps(self, shape: _Shape) -> list[_Permute | _Shape]:
        """Shapes and permutes that lead to the present order, in that shape."""
        before = [unit for units in self._source for unit in units]
        after = [unit for units in self._now for unit in units]
        if before == after:
            return [] if tuple(self.shape) == tuple(shape) else [shape]
        if (places := _places(self._source, self._now)) is not None:
            return [_Permute(places)]
        if _stays_together(self._source, after):
            return self._permuted(self.shape, self._source, after, shape)
        if _stays_together(self._now, before):
            order = sorted(
                range(len(self._now)),
                key=lambda axis: before.index(self._now[axis][0]) if self._now[axis] else -1,
            )
            return [[shape[axis] for axis in order],
                    _Permute([order.index(axis) for axis in range(len(order))])]  # fmt: skip
        joined = self._joined(before, after)
        sizes = [self._size(units) for units in joined]
        return [sizes, *self._permuted(sizes, joined, after, shape)]

    @staticmethod
    def _permuted(
        before: _Shape, dims: Sequence[list[int]], order: Sequence[int], shape: _Shape
    ) -> list[_Permute | _Shape]:
        """A permute of dimensions that stay whole, those of one element first, and the shape."""
        places = sorted(
            range(len(dims)), key=lambda axis: order.index(dims[axis][0]) if dims[axis] else -1
        )
        made = tuple(before[place] for place in places)
        return [_Permute(places), *([shape] if made != tuple(shape) else [])]

    @staticmethod
    def _joined(before: Sequence[int], after: Sequence[int]) -> list[list[int]]:
        """The units in their first order, those that stay neighbours as one."""
        follows = dict(pairwise(after))
        joined = [[before[0]]]
        for last, unit in pairwise(before):
            if follows.get(last) == unit:
                joined[-1].append(unit)
            else:
                joined.append([unit])
        return joined


def _places(source: Sequence[list[int]], now: Sequence[list[int]]) -> list[int] | None:
    """The permutation of the source's dimensions that gives the present ones, if there is one."""
    left = list(range(len(source)))
    if len(source) != len(now):
        return None
    places: list[int] = []
    for units in now:
        axis = next((axis for axis in left if source[axis] == units), None)
        if axis is None:
            return None
        left.remove(axis)
        places.append(axis)
    return places


def _stays_together(dims: Sequence[list[int]], order: Sequence[int]) -> bool:
    """True if the units of each dimension are neighbours in that order, as they are in it."""
    place = {unit: index for index, unit in enumerate(order)}
    return all(place[last] + 1 == place[unit] for units in dims for last, unit in pairwise(units))
