"""The loops of a linalg.generic as dimensions of tensors, and its operands as tensors over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from ttcodegen.dialects.core.datatypes import (
    element_of,
    f32,
    normalized_data_type,
    shape_of,
    tensor_type,
)
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.translation import Translator

Value = SSAValue | float
"""A tensor over the loops, or one number."""

_MOST_PLACES = 1 << 22
"""Elements of an operand that are looked up one by one."""


@dataclass
class Loops:
    """The loops of a generic."""

    build: Translator
    sizes: tuple[int, ...]
    reduced: list[int]
    """Those that results have no dimension for."""

    @property
    def rank(self) -> int:
        """Number of loops."""
        return len(self.sizes)

    def operand(self, value: SSAValue, map_: Any) -> SSAValue:
        """A tensor with a dimension for each loop, of one element where it does not depend on it,
        from an operand and its indexing map."""
        places = places_of(map_)
        if places is None:
            return self._looked_up(value, list(map_.data.results))
        return self.broadcast(value, places)

    def broadcast(self, value: SSAValue, places: Sequence[int | None]) -> SSAValue:
        """As `operand`; `places` are the loops of its dimensions, None for one of one element."""
        kept = [axis for axis, place in enumerate(places) if place is not None]
        found = [place for place in places if place is not None]
        shape = shape_of(value.type)
        value = self.build.reshape(value, [shape[axis] for axis in kept])
        while len(set(found)) != len(found):
            value, found = self._diagonal(value, found)
        order = sorted(range(len(found)), key=lambda axis: found[axis])
        value = self.build.permute(value, order)
        return self.build.reshape(value, self._sizes_of(found))

    def _sizes_of(self, loops: Sequence[int]) -> list[int]:
        return [size if loop in loops else 1 for loop, size in enumerate(self.sizes)]

    def _diagonal(self, value: SSAValue, loops: list[int]) -> tuple[SSAValue, list[int]]:
        """The elements at equal indices of the first two dimensions that follow one loop."""
        loop = next(each for each in loops if loops.count(each) > 1)
        pair = [axis for axis, each in enumerate(loops) if each == loop][:2]
        rest = [axis for axis in range(len(loops)) if axis not in pair]
        value = self.build.permute(value, [*rest, *pair])
        *others, size, _ = shape_of(value.type)
        flat = self.build.reshape(value, [*others, size * size])
        begins, ends = [0] * (len(others) + 1), [*others, size * size]
        value = self.build.slice(flat, begins, ends, [*[1] * len(others), size + 1])
        return value, [*(loops[axis] for axis in rest), loop]

    def _looked_up(self, value: SSAValue, expressions: Sequence[AffineExpr]) -> SSAValue:
        """The elements at the indices that expressions of loops say."""
        used = sorted({loop for each in expressions for loop in each.used_dims()})
        sizes = self._sizes_of(used)
        if prod(sizes) > _MOST_PLACES:
            raise CompileError(
                f"a linalg.generic that looks {prod(sizes)} elements of an operand up by an "
                "expression of loops is not supported",
                remedy="print convolutions, pools and slices as operations of that name",
            )
        loops: Any = list(np.indices(sizes).reshape(self.rank, -1))
        shape = shape_of(value.type)
        flat = np.zeros(prod(sizes), np.int64)
        for size, expression in zip(shape, expressions, strict=True):
            places = np.asarray(expression.eval(loops, []))
            flat = flat * size + np.broadcast_to(places, flat.shape)
        if flat.size and not 0 <= flat.min() <= flat.max() < prod(shape):
            raise CompileError("the indexing map leads out of the operand")
        return self.build.reshape(elements_at(self.build, value, self.build.constant(flat, i32)),
                                  sizes)  # fmt: skip

    def at_step(self, value: Value, step: Sequence[int]) -> Value:
        """Slices a tensor over the loops at one step of the reduction loops."""
        if not isinstance(value, SSAValue):
            return value
        begins, ends = [0] * self.rank, list(shape_of(value.type))
        for loop, place in zip(self.reduced, step, strict=True):
            if ends[loop] != 1:
                begins[loop], ends[loop] = place, place + 1
        return self.build.slice(value, begins, ends)

    def tensor(self, value: Value, element: Attribute) -> SSAValue:
        """A number as a tensor that broadcasts over the loops."""
        if isinstance(value, SSAValue):
            return value
        data_type = normalized_data_type(element)
        is_float = data_type is not None and data_type.is_float
        number = float(value) if is_float else int(value)
        return self.build.full([1] * self.rank, number, element)


def places_of(map_: Any) -> list[int | None] | None:
    """Loop index of each operand dimension, None for constant 0.

    None as a whole for a map that computes indices.
    """
    places: list[int | None] = []
    for expression in map_.data.results:
        if isinstance(expression, AffineDimExpr):
            places.append(expression.position)
        elif isinstance(expression, AffineConstantExpr) and expression.value == 0:
            places.append(None)
        else:
            return None
    return places


def elements_at(build: Translator, value: SSAValue, flat: SSAValue) -> SSAValue:
    """The elements of a tensor at indices counted over all of it, in the shape of the indices."""
    shape = shape_of(flat.type)
    element = element_of(value.type)
    count = prod(shape_of(value.type))
    data_type = normalized_data_type(element)
    indices = build.reshape(flat, [prod(shape)])
    if data_type is not None and data_type.is_float:
        table = build.reshape(value, [count, 1])
        found = build.emit("embedding", [indices, table], tensor_type(element, [prod(shape), 1]))
        return build.reshape(found, shape)
    wide = build.typecast(build.reshape(value, [count]), element if element == i32 else f32)
    found = build.emit("gather", [wide, indices], tensor_type(element_of(wide.type), [prod(shape)]),
                       dim=0)  # fmt: skip
    return build.typecast(build.reshape(found, shape), element)


def device_element(type_: Attribute) -> Attribute:
    """The element type that replaces one of a body; f64 and indices are as wide as a device has
    them."""
    name = str(type_)
    return {"f64": f32, "index": i32}.get(name, type_)
