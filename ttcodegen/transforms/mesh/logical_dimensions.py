"""Logical dimensions of a function, sharded together, and propagation of shardings.

The rules of ops (`ttcodegen.ops.core.dimensions`) relate dimensions of operands and results.
Dimensions that are related through all ops of a function form one logical dimension: the batch, the
heads of a layer, its hidden units. Dividing one along an axis of the mesh divides every tensor that
has it, so that there are few ways to divide a function, and the estimate of each is linear in the
number of ops.

Shardings of arguments, results and intermediate values propagate forward and backward along related
dimensions until nothing changes, as in Shardy and GSPMD (https://openxla.org/shardy/propagation),
with fewer priorities.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd, prod

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from ttcodegen.dialects.core.datatypes import (
    DataType,
    element_of,
    normalized_data_type,
    shape_of,
)
from ttcodegen.dialects.operations.functions import argument_type, attributes_at, body_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import MeshShape
from ttcodegen.dialects.ttcore.dialect import ArgumentType
from ttcodegen.dialects.ttir.annotations import (
    SHARDING,
    Sharding,
    WantedSharding,
    common_prefix,
    undivided,
)
from ttcodegen.ops.collectives.mesh_sharding import divides_among_chips
from ttcodegen.ops.core.definition import TTIRDefinition, has_trait
from ttcodegen.ops.core.dimensions import Dimensions, Labels
from ttcodegen.ops.core.traits import Trait

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
    """Returns the part of a sharding that divides a tensor of that shape evenly.

    Mesh axes of one device are dropped.
    """
    kept: list[Axes] = []
    for size, axes in zip(shape, sharding, strict=True):
        several = [axis for axis in axes if mesh[axis] > 1]
        while several and (size == 0 or size % prod(mesh[axis] for axis in several)):
            several.pop()
        kept.append(tuple(several))
    return tuple(kept)


def sharding_of_parts(op: CatalogueOp) -> Sharding:
    """Returns the sharding of the whole tensor that `mesh_shard` divides or assembles."""
    dims: list[int] = op.parameter("shard_dims") or []
    dims = [-1] * (2 - len(dims)) + dims
    return tuple(
        [
            tuple([axis for axis, dim in enumerate(dims) if dim == each])
            for each in range(len(op.result_shape))
        ]
    )


class Assignment:
    """Assigns mesh axes to the labels of an op; no two labels share an axis."""

    def __init__(self, largest: Mapping[int, int], mesh: MeshShape) -> None:
        self.axes: dict[int, Axes] = {}
        self._largest = largest
        self._mesh = mesh

    def offer(self, labels: Labels, sharding: Sharding) -> None:
        """Adopts the sharding of a tensor as far as it is compatible with earlier offers."""
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
        """Returns the sharding of a tensor with these labels."""
        return tuple([() if label is None else self.axes.get(label, ()) for label in labels])


class Propagation:
    """Shardings of the values of a function."""

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
        """Returns the assignment of axes to the labels of an op.

        Larger tensors come first, for they cost most to reshard. `current` overrides the planned
        sharding of values that are already divided.
        """
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
        """Shards a value further along its open dimensions; returns whether anything changed."""
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


def _is_unary_movement(op: Operation) -> bool:
    """Returns whether an op of one operand only moves data, as between a weight and its use."""
    if not isinstance(op, CatalogueOp) or len(op.operands) != 1:
        return False
    return isinstance(op.definition, TTIRDefinition) and op.definition.moves


def weights_of(function: FuncOp) -> set[SSAValue]:
    """Returns the arguments that are weights: as declared, else as inferred from their uses."""
    arguments = body_of(function).args
    declared = {
        argument: argument_type(function, argument.index)
        in (ArgumentType.PARAMETER, ArgumentType.CONSTANT)
        for argument in arguments
    }
    if any(declared.values()):
        return {argument for argument, is_weight in declared.items() if is_weight}
    return {argument for argument in arguments if argument.uses and _is_used_as_weight(argument)}


def _is_used_as_weight(argument: SSAValue) -> bool:
    """Returns whether all uses of an argument, through movement ops, are as a weight."""
    pending = [argument]
    while pending:
        for use in pending.pop().uses:
            op = use.operation
            if _is_unary_movement(op):
                pending += op.results
            elif not isinstance(op, CatalogueOp) or not _takes_weight(op, op.operands[use.index]):
                return False
    return True


def _takes_weight(op: CatalogueOp, value: SSAValue) -> bool:
    """Returns whether an operand is a weight of an op: its right factor, its bias, or the like."""
    if any(
        spec.input_kind == "weight" and op.optional_operand(spec.name) is value
        for spec in op.definition.operands
        if spec.count != "variadic"
    ):
        return True
    if len(shape_of(value.type)) <= 1 and op.operands[0] is not value:
        return True
    if not is_product(op) or op.operands[0] is value:
        return False
    # A batched matmul of two arguments is of activations, such as queries and keys.
    return len(shape_of(value.type)) <= 2 or not isinstance(
        _before_movement(op.operands[0]), BlockArgument
    )


def _before_movement(value: SSAValue) -> SSAValue:
    """Returns the value before the movement ops that produce a value."""
    while isinstance(owner := value.owner, Operation) and _is_unary_movement(owner):
        value = owner.operands[0]
    return value


def is_product(op: CatalogueOp) -> bool:
    """Returns whether an op is a matmul, a linear op or a convolution."""
    definition = op.definition
    return (
        isinstance(definition, TTIRDefinition)
        and definition.matrix_engine
        and len(op.operands) > 1
        and Trait.SKIPS_HIDDEN not in definition.traits
    )


@dataclass
class LogicalDimension:
    """Dimensions of tensors that are sharded together."""

    size: int = 0
    """Greatest common divisor of their sizes; the number of shards has to divide it."""
    members: list[tuple[SSAValue, int]] = field(default_factory=list[tuple[SSAValue, int]])
    is_batch_of_weights: bool = False
    """True if it is a batch dimension of a matmul by weights, such as experts."""
    is_of_weights: bool = False
    """True if it is a dimension of a matmul's weight."""
    conflicts: set[int] = field(default_factory=set[int])
    """Logical dimensions of the same op: one axis cannot divide both."""


@dataclass(frozen=True)
class Rates:
    """Performance figures of a mesh, for estimates before lowering."""

    flops: float
    """Operations per second of one device."""
    dram: float
    """Bytes per second of its DRAM."""
    link: float
    """Bytes per second between neighbours, in one direction."""


@dataclass(frozen=True)
class Gain:
    """Estimated effect of dividing a logical dimension."""

    saved: float = 0.0
    """Seconds of computation that each device saves."""
    sent: float = 0.0
    """Seconds of the collectives that it needs."""

    @property
    def net(self) -> float:
        """Seconds saved less those of the collectives."""
        return self.saved - self.sent


class LogicalDimensions:
    """The logical dimensions of a function, by their numbers."""

    def __init__(self, function: FuncOp) -> None:
        self.function = function
        self.weights = weights_of(function)
        self._first: dict[SSAValue, int] = {}
        self._parents: list[int] = []
        self._ops: list[tuple[CatalogueOp, Dimensions]] = []
        self._whole: list[CatalogueOp] = []
        """Ops that need whole tensors."""
        block = body_of(function)
        for argument in block.args:
            self._add(argument)
        for op in block.ops:
            for result in op.results:
                self._add(result)
            if isinstance(op, CatalogueOp):
                dimensions = dimensions_of(op)
                if dimensions is None:
                    self._whole.append(op)
                else:
                    self._ops.append((op, dimensions))
                    self._join(op, dimensions)
        self._from_weights = self._made_of_weights()
        self.found: dict[int, LogicalDimension] = {}
        self._collect()

    def _add(self, value: SSAValue) -> None:
        self._first[value] = len(self._parents)
        rank = len(shape_of(value.type)) if hasattr(value.type, "shape") else 0
        self._parents += range(len(self._parents), len(self._parents) + rank)

    def _root(self, place: int) -> int:
        parents = self._parents
        while parents[place] != place:
            parents[place] = parents[parents[place]]
            place = parents[place]
        return place

    def of(self, value: SSAValue, dim: int) -> int:
        """Returns the number of the logical dimension of a dimension of a value."""
        return self._root(self._first[value] + dim)

    def _join(self, op: CatalogueOp, dimensions: Dimensions) -> None:
        joined: dict[int, int] = {}
        for value, labels in _labelled(op, dimensions):
            for dim, label in enumerate(labels):
                if label is None:
                    continue
                place = self.of(value, dim)
                other = joined.setdefault(label, place)
                # The earliest member is the root, so that numbers follow the order of the program.
                low, high = sorted((place, self._root(other)))
                self._parents[high] = low

    def _made_of_weights(self) -> set[SSAValue]:
        """Returns the weights, and values computed from weights and constants alone."""
        found = set(self.weights)
        for op in body_of(self.function).ops:
            if isinstance(op, CatalogueOp) and all(value in found for value in op.operands):
                found.update(op.results)
        return found

    def _collect(self) -> None:
        for value in self._first:
            if not hasattr(value.type, "shape"):
                continue
            for dim, size in enumerate(shape_of(value.type)):
                found = self.found.setdefault(self.of(value, dim), LogicalDimension())
                found.size = gcd(found.size, size)
                found.members.append((value, dim))
        for op, dimensions in self._ops:
            numbers = self.numbers(op, dimensions)
            present = set(numbers.values())
            for number in present:
                self.found[number].conflicts |= present - {number}
            if is_product(op):
                self._note_product(op, dimensions, numbers)

    def _note_product(
        self, op: CatalogueOp, dimensions: Dimensions, numbers: Mapping[int, int]
    ) -> None:
        results = {label for labels in dimensions.results for label in labels}
        left = set(dimensions.operands[0])
        for value, labels in list(zip(op.operands, dimensions.operands, strict=True))[1:2]:
            if value not in self._from_weights:
                continue
            # Batches of the right factor of a matmul may have one left factor.
            batch = labels[:-2] if has_trait(op, Trait.MATRIX_PRODUCT) else ()
            for label in labels:
                if label is not None:
                    found = self.found[numbers[label]]
                    found.is_of_weights = True
                    is_batch = label in left or label in batch
                    found.is_batch_of_weights |= is_batch and label in results

    def numbers(self, op: CatalogueOp, dimensions: Dimensions) -> dict[int, int]:
        """Returns the numbers of the logical dimensions of an op's labels."""
        return {
            label: self.of(value, dim)
            for value, labels in _labelled(op, dimensions)
            for dim, label in enumerate(labels)
            if label is not None
        }

    def gains(self, parts: int, rates: Rates) -> dict[int, Gain]:
        """Returns the estimated effect of dividing each logical dimension into `parts`."""
        saved = dict.fromkeys(self.found, 0.0)
        sent = dict.fromkeys(self.found, 0.0)
        gathered: set[tuple[SSAValue, int]] = set()
        share = (parts - 1) / parts

        def gather(value: SSAValue, dim: int) -> None:
            number = self.of(value, dim)
            if value in self._from_weights or (value, number) in gathered:
                return
            gathered.add((value, number))
            sent[number] += share * bytes_before_lowering(value) / rates.link

        for op, dimensions in self._ops:
            if all(result in self._from_weights for result in op.results):
                continue
            numbers = self.numbers(op, dimensions)
            values = list(_labelled(op, dimensions))
            moved = [float(bytes_before_lowering(value)) for value, _ in values]
            computing = _operations(op, dimensions) / rates.flops
            before = max(computing, sum(moved) / rates.dram)
            counted: set[int] = set()
            for label, number in numbers.items():
                if number in counted:
                    # The op has the dimension twice: one of them has to be gathered.
                    for value, labels in values[: len(op.operands)]:
                        if label in labels:
                            gather(value, labels.index(label))
                    continue
                counted.add(number)
                after = sum(
                    size / parts if label in labels else size
                    for size, (_, labels) in zip(moved, values, strict=True)
                )
                saved[number] += before - max(computing / parts, after / rates.dram)
                if label in dimensions.reduced and op.results:
                    sent[number] += 2 * share * bytes_before_lowering(op.results[0]) / rates.link
            for value, labels in values[: len(op.operands)]:
                for dim, label in enumerate(labels):
                    if label is None and shape_of(value.type)[dim] > 1:
                        gather(value, dim)
        for op in self._whole:
            for value in op.operands:
                for dim, size in enumerate(shape_of(value.type)):
                    if size > 1:
                        gather(value, dim)
        return {number: Gain(saved[number], sent[number]) for number in self.found}


def _labelled(
    op: CatalogueOp, dimensions: Dimensions
) -> Sequence[tuple[SSAValue, tuple[int | None, ...]]]:
    """Pairs operands, then results, with their labels."""
    values = [*op.operands, *op.results]
    return list(zip(values, [*dimensions.operands, *dimensions.results], strict=True))


def bytes_before_lowering(value: SSAValue) -> int:
    """Returns the estimated bytes of a value on the device: 2 per bf16 element, else 4."""
    data_type = normalized_data_type(element_of(value.type))
    return prod(shape_of(value.type)) * (2 if data_type is DataType.BFLOAT16 else 4)


def seconds_before_lowering(op: Operation, rates: Rates) -> float:
    """Returns the roofline estimate of an op on one device: operations or bytes moved."""
    if not isinstance(op, CatalogueOp):
        return 0.0
    dimensions = dimensions_of(op)
    operations = 0.0 if dimensions is None else _operations(op, dimensions)
    shaped = [value for value in (*op.operands, *op.results) if hasattr(value.type, "shape")]
    return max(operations / rates.flops, sum(map(bytes_before_lowering, shaped)) / rates.dram)


def _operations(op: CatalogueOp, dimensions: Dimensions) -> float:
    """Returns the floating-point operations of the matrix engine."""
    definition = op.definition
    if not isinstance(definition, TTIRDefinition) or not definition.matrix_engine:
        return 0.0
    if len(op.operands) < 2:  # Sums are matmuls by ones.
        return 2.0 * prod(shape_of(op.operands[0].type))
    kept = {label for labels in dimensions.results for label in labels}
    right = zip(shape_of(op.operands[1].type), dimensions.operands[1], strict=True)
    inner = prod(size for size, label in right if label is None or label not in kept)
    return 2.0 * prod(op.result_shape) * inner
