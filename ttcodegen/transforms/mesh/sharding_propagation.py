"""Sharding propagation over the values of a function.

What is said of arguments, results and values in between goes from operands to results and back,
along the dimensions that go together (`ttcodegen.ops.core.dimensions`), until nothing changes: the
method of Shardy and GSPMD (https://openxla.org/shardy/propagation), with fewer priorities.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.functions import attributes_at, body_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import MeshShape
from ttcodegen.dialects.ttir.sharding import (
    SHARDING,
    Sharding,
    WantedSharding,
    common_prefix,
    undivided,
)
from ttcodegen.ops.collectives.mesh_sharding import divides_among_chips
from ttcodegen.ops.core.definition import TTIRDefinition
from ttcodegen.ops.core.dimensions import Dimensions, Labels

_MOST_ROUNDS = 16
"""Upper bound on propagation rounds; a program needs one per change of direction."""

Axes = tuple[int, ...]


def dimensions_of(op: CatalogueOp) -> Dimensions | None:
    """Returns the dimension labels of an op, or None if it needs whole tensors."""
    definition = op.definition
    if not isinstance(definition, TTIRDefinition) or definition.dimensions is None:
        return None
    return definition.dimensions(op)


def divisible(shape: Sequence[int], sharding: Sharding, mesh: MeshShape) -> Sharding:
    """As much of a sharding as divides a tensor of that shape into equal parts; axes of one chip
    divide nothing."""
    kept: list[Axes] = []
    for size, axes in zip(shape, sharding, strict=True):
        several = [axis for axis in axes if mesh[axis] > 1]
        while several and (size == 0 or size % prod(mesh[axis] for axis in several)):
            several.pop()
        kept.append(tuple(several))
    return tuple(kept)


def sharding_of_parts(op: CatalogueOp) -> Sharding:
    """Sharding of the whole tensor of an op on shards."""
    dims: list[int] = op.parameter("shard_dims") or []
    dims = [-1] * (2 - len(dims)) + dims
    return tuple(
        [
            tuple([axis for axis, dim in enumerate(dims) if dim == each])
            for each in range(len(op.result_shape))
        ]
    )


class Assignment:
    """Gives the labels of an op axes of the mesh; no two labels have the same axis."""

    def __init__(self, largest: Mapping[int, int], mesh: MeshShape) -> None:
        self.axes: dict[int, Axes] = {}
        self._largest = largest
        self._mesh = mesh

    def offer(self, labels: Labels, sharding: Sharding) -> None:
        """Takes over what a tensor of the op is divided by, as far as nothing else was before."""
        for label, axes in zip(labels, sharding, strict=True):
            if label is None or not axes:
                continue
            had = self.axes.get(label, ())
            if common_prefix(had, axes) < len(had):
                continue
            taken = {axis for other, of in self.axes.items() if other != label for axis in of}
            chosen: list[int] = []
            for axis in axes:
                parts = prod(self._mesh[each] for each in (*chosen, axis))
                if axis in taken or self._largest[label] % parts:
                    break
                chosen.append(axis)
            if len(chosen) > len(had):
                self.axes[label] = tuple(chosen)

    def of(self, labels: Labels) -> Sharding:
        """Sharding of a tensor with these labels."""
        return tuple([() if label is None else self.axes.get(label, ()) for label in labels])


class Propagation:
    """The shardings of the values of a function."""

    def __init__(self, function: FuncOp, mesh: MeshShape) -> None:
        self._mesh = mesh
        self._shardings: dict[SSAValue, Sharding] = {}
        self.wanted: dict[SSAValue, WantedSharding] = {}
        """Shardings that the function declares for arguments and op results."""
        self._ops: list[tuple[CatalogueOp, Dimensions]] = []
        self._read(function)
        self._run()

    def __getitem__(self, value: SSAValue) -> Sharding:
        found = self._shardings.get(value)
        return undivided(len(shape_of(value.type))) if found is None else found

    def _read(self, function: FuncOp) -> None:
        block = body_of(function)
        for index, argument in enumerate(block.args):
            self._want(argument, attributes_at(function.arg_attrs, index).get(SHARDING))
        for op in block.ops:
            if isinstance(op, CatalogueOp):
                if op.results:
                    self._want(op.results[0], op.attributes.get(SHARDING))
                if divides_among_chips(op):
                    value = op.operands[0]
                    if op.parameter("shard_direction") == "shard_to_full":
                        value = op.results[0]
                    if value not in self._shardings:
                        self._set(value, sharding_of_parts(op))
                if (dimensions := dimensions_of(op)) is not None:
                    self._ops.append((op, dimensions))
            elif isinstance(op, ReturnOp):
                for index, value in enumerate(op.operands):
                    said = attributes_at(function.res_attrs, index).get(SHARDING)
                    found = WantedSharding.of(said, len(shape_of(value.type)))
                    if found is not None and value not in self._shardings:
                        self._set(value, found.axes)

    def _want(self, value: SSAValue, attribute: object) -> None:
        shape = shape_of(value.type)
        found = WantedSharding.of(attribute, len(shape))  # pyright: ignore[reportArgumentType]
        if found is not None:
            axes = divisible(shape, found.axes, self._mesh)
            self.wanted[value] = WantedSharding(axes, found.is_open)
            self._shardings[value] = axes

    def _set(self, value: SSAValue, sharding: Sharding) -> None:
        self._shardings[value] = divisible(shape_of(value.type), sharding, self._mesh)

    def _run(self) -> None:
        for _ in range(_MOST_ROUNDS):
            changed = self._sweep(self._ops)
            changed |= self._sweep(reversed(self._ops))
            if not changed:
                return

    def _sweep(self, ops: Iterable[tuple[CatalogueOp, Dimensions]]) -> bool:
        changed = False
        for op, dimensions in ops:
            values = [*op.operands, *op.results]
            labels = [*dimensions.operands, *dimensions.results]
            if not any(value in self._shardings for value in values):
                continue
            assignment = self.assigned(op, dimensions)
            for value, dims in zip(values, labels, strict=True):
                changed |= self._extend(value, assignment.of(dims))
        return changed

    def assigned(
        self,
        op: CatalogueOp,
        dimensions: Dimensions,
        current: Mapping[SSAValue, Sharding] | None = None,
    ) -> Assignment:
        """The axes of the labels of an op: those of its largest tensors come first, for they are
        what costs most to bring from chip to chip. `current` has what values are divided by that
        are there already."""
        assignment = Assignment(dimensions.largest(op), self._mesh)
        values = [*op.operands, *op.results]
        labels = [*dimensions.operands, *dimensions.results]
        offers = [
            (prod(shape_of(value.type)), dims, current[value] if current and value in current
             else self[value])
            for value, dims in zip(values, labels, strict=True)
        ]  # fmt: skip
        for _, dims, sharding in sorted(offers, key=lambda offer: -offer[0]):
            assignment.offer(dims, sharding)
        return assignment

    def _extend(self, value: SSAValue, sharding: Sharding) -> bool:
        """Divides a value further, where it is open; gives whether anything changed."""
        before, wanted = self[value], self.wanted.get(value)
        used = {axis for axes in before for axis in axes}
        after: list[Axes] = []
        for dim, (had, axes) in enumerate(zip(before, sharding, strict=True)):
            is_open = wanted is None or wanted.is_open[dim]
            more = axes[len(had) :] if common_prefix(had, axes) == len(had) else ()
            if is_open and more and not used & set(more):
                after.append(axes)
                used |= set(more)
            else:
                after.append(had)
        extended = divisible(shape_of(value.type), tuple(after), self._mesh)
        if extended == before:
            return False
        self._shardings[value] = extended
        return True
