"""Partitioning of a module over the devices of its mesh."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type
from ttcodegen.dialects.operations.functions import attributes_at, body_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import ONE_CHIP, MeshShape, declared_mesh
from ttcodegen.dialects.ttir.annotations import (
    SHARDING,
    SHARE,
    Sharding,
    WantedSharding,
    common_prefix,
    says_shardings,
    undivided,
)
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.ops.collectives.mesh_sharding import (
    divided_dims,
    divides_among_chips,
    partitioned_dim,
)
from ttcodegen.ops.collectives.schedule import TensorParts
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import works_between_chips
from ttcodegen.ops.core.dimensions import Dimensions
from ttcodegen.ops.dialects import ttir_op_classes
from ttcodegen.transforms.mesh.logical_dimensions import (
    Assignment,
    Propagation,
    dimensions_of,
    sharding_of_parts,
)
from ttcodegen.transforms.rewriting import functions, keep, rebuild

# SPMD partitioning.
#
# A module may annotate shardings (`ttcore.sharding`) without the computation of each device. Each
# op is rewritten to operate on shards: its operands are resharded as it needs them, and partial
# sums are reduced across devices. An op without a sharding rule gets gathered operands, so that
# results equal those of one device.


@dataclass(frozen=True)
class TTIRPartition(ModulePass):
    """Replaces `ttcore.sharding` by ops on shards and collectives."""

    name = "ttir-partition"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        mesh = declared_mesh(op)
        if mesh == ONE_CHIP:
            return
        for function in functions(op):
            if not function.is_declaration and says_shardings(function):
                split_biases(function)
                _Partition(function, mesh).run()
                _drop_shardings(function)


def split_biases(function: FuncOp) -> None:
    """Splits `linear` with a bias into a matmul and a sum.

    Devices that shard the inner dimension then add the bias once, after the reduction.
    """
    if not any(map(_has_bias, body_of(function).ops)):
        return

    def builder_of(
        insert: Callable[[Operation], None], mapping: Mapping[SSAValue, SSAValue]
    ) -> OpBuilder:
        return OpBuilder(ttir_op_classes(), insert, mapping)

    def rewrite(builder: OpBuilder, op: CatalogueOp) -> SSAValue | Sequence[SSAValue]:
        if not _has_bias(op):
            keep(builder, op, [builder[value] for value in op.operands])
            return op.results
        a, b, bias = (builder[value] for value in op.operands)
        transposes = {name: op.parameter(name) for name in ("transpose_a", "transpose_b")}
        product = builder.emit("matmul", [a, b], op.result_type, **transposes)
        made = builder.emit_op("add", [product, bias], op.result_type)
        if SHARDING in op.attributes:
            made.attributes[SHARDING] = op.attributes[SHARDING]
        return made.results

    rebuild(function, builder_of, rewrite)


def _has_bias(op: Operation) -> bool:
    """Returns whether an op is a `linear` with a bias row, whose result has the shape of its
    matmul."""
    if op.name != "ttir.linear" or not isinstance(op, CatalogueOp) or len(op.operands) < 3:
        return False
    bias, b = op.shape("bias"), op.shape("b")
    if not bias or prod(bias) != bias[-1] or dimensions_of(op) is None:
        return False
    return op.result_shape[-1] == b[-2 if op.parameter("transpose_b") else -1]


def _drop_shardings(function: FuncOp) -> None:
    """Erases the sharding attributes of arguments and results."""

    def without(attributes: ArrayAttr[DictionaryAttr]) -> ArrayAttr[DictionaryAttr]:
        return ArrayAttr(
            [
                DictionaryAttr({key: v for key, v in each.data.items() if key != SHARDING})
                for each in attributes.data
            ]
        )

    if function.arg_attrs is not None:
        function.arg_attrs = without(function.arg_attrs)
    if function.res_attrs is not None:
        function.res_attrs = without(function.res_attrs)


class _Partition:
    """Rebuilds a function of whole tensors as one of shards."""

    def __init__(self, function: FuncOp, mesh: MeshShape) -> None:
        self._function = function
        self._mesh = mesh
        self._plan = Propagation(function, mesh)
        self._current: dict[SSAValue, Sharding] = {}
        """Current sharding of each computed value of the old function."""
        self._local: set[SSAValue] = set()
        """Values of manual computations: each device has its own."""
        self._shards: dict[SSAValue, dict[Sharding, SSAValue]] = {}
        """Shards of values of the old function, by sharding."""
        self._overwritten: dict[SSAValue, CatalogueOp] = {}
        """Values of the old function that an op writes in place, with that op: the written shards
        replace them."""
        self._builder = OpBuilder(ttir_op_classes(), lambda _: None)
        self._parts = TensorParts(self._builder, mesh)

    def _builder_of(
        self, insert: Callable[[Operation], None], mapping: Mapping[SSAValue, SSAValue]
    ) -> OpBuilder:
        self._builder = OpBuilder(ttir_op_classes(), insert, mapping)
        self._parts = TensorParts(self._builder, self._mesh)
        return self._builder

    def run(self) -> None:
        returned = cast("ReturnOp", body_of(self._function).last_op)
        whole = list(returned.operands)
        rebuild(self._function, self._builder_of, lambda _, op: self._rewrite(op))
        # Returned arguments and values are assembled before the return.
        block = body_of(self._function)

        def before_return(op: Operation) -> None:
            block.insert_op_before(op, returned)

        self._builder.insert = before_return
        self._builder.origin = returned
        self._refuse_lost_writes(whole)
        returned.operands = [
            self._returned(old, value) for old, value in zip(whole, returned.operands, strict=True)
        ]

    def _returned(self, old: SSAValue, value: SSAValue) -> SSAValue:
        """Returns the whole tensor of a returned value; `value` is its counterpart in the new
        function."""
        if old in self._overwritten:
            sharding = self._current[old]
            return self._parts.unite(self._shards[old][sharding], sharding, inside=False)
        if old in self._local or isinstance(old, BlockArgument):
            return value
        return self._parts.unite(value, self._current[old], inside=False)

    def _refuse_lost_writes(self, returned: Sequence[SSAValue]) -> None:
        """Raises CompileError if an op overwrites a sharded argument that is not returned.

        Only the devices have its new elements, and the caller holds the whole tensor.
        """
        for value, op in self._overwritten.items():
            parts = self._shards[value][self._current[value]]
            if isinstance(value, BlockArgument) and parts is not value and value not in returned:
                raise CompileError(
                    f"'{op.name}' overwrites an argument that is divided among chips, and the "
                    "function does not return it",
                    op,
                    remedy="return the argument after it is overwritten",
                )

    # Values

    def _have(self, value: SSAValue) -> Sharding:
        """Returns the sharding of a value of the old function."""
        if value not in self._current:
            # An argument.
            self._current[value] = self._plan[value]
        return self._current[value]

    def _sharded(self, value: SSAValue, wanted: Sharding) -> SSAValue:
        """Returns the shards of a value for a sharding."""
        if value in self._local:
            return self._builder[value]
        made = self._shards.setdefault(value, {})
        found = made.get(wanted)
        if found is None:
            have = self._have(value)
            start = made.get(have)
            if start is None and isinstance(value, BlockArgument):
                start = made[have] = self._parts.divide(value, have, inside=False)
            elif start is None:
                start = self._builder[value]
            found = made[wanted] = self._resharded(start, have, wanted)
        return found

    def _record_write(
        self, op: CatalogueOp, made: CatalogueOp, shardings: Sequence[Sharding]
    ) -> None:
        """Records the shards of an operand that an op writes in place."""
        name = op.definition.in_place
        if name is None:
            return
        old = op.operand(name)
        place = list(op.operands).index(old)
        sharding = shardings[place]
        self._overwritten[old] = op
        self._current[old] = sharding
        self._shards[old] = {sharding: made.operands[place]}

    def _resharded(self, part: SSAValue, have: Sharding, wanted: Sharding) -> SSAValue:
        """Gathers the axes that differ, then partitions each device's share."""
        kept = [common_prefix(one, other) for one, other in zip(have, wanted, strict=True)]
        for dim, (axes, count) in enumerate(zip(have, kept, strict=True)):
            for axis in reversed(axes[count:]):
                part = self._parts.gather(part, dim, axis)
        for dim, (axes, count) in enumerate(zip(wanted, kept, strict=True)):
            for axis in axes[count:]:
                part = self._parts.partition(part, dim, axis)
        return part

    # Ops

    def _rewrite(self, op: CatalogueOp) -> Sequence[SSAValue]:
        op.attributes.pop(SHARDING, None)
        if divides_among_chips(op):
            return [self._manual_boundary(op)]
        if works_between_chips(op) or any(v in self._local for v in op.operands):
            self._local.update(op.results)
            types = [result.type for result in op.results]
            return self._copy(op, self._whole(op.operands), types, {}).results
        dimensions = dimensions_of(op)
        results = None if dimensions is None else self._on_shards(op, dimensions)
        if results is None:
            made = self._copy(
                op, self._whole(op.operands), [result.type for result in op.results], {}
            )
            results = made.results
            self._record_write(op, made, [undivided(_rank(value)) for value in op.operands])
            for result in op.results:
                self._current[result] = undivided(len(shape_of(result.type)))
        return [self._as_annotated(old, new) for old, new in zip(op.results, results, strict=True)]

    def _manual_boundary(self, op: CatalogueOp) -> SSAValue:
        """Enters or leaves a manual computation."""
        (value,), sharding = op.operands, sharding_of_parts(op)
        if op.parameter("shard_direction") == "shard_to_full":
            self._current[op.results[0]] = sharding
            return self._as_annotated(op.results[0], self._sharded(value, sharding))
        self._local.add(op.results[0])
        if value in self._local:
            return self._copy(op, [self._builder[value]], [op.result_type], {}).results[0]
        return self._sharded(value, sharding)

    def _whole(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        return [self._sharded(value, undivided(_rank(value))) for value in values]

    def _as_annotated(self, old: SSAValue, new: SSAValue) -> SSAValue:
        """Reshards a new value as the function annotates it, if it does."""
        wanted = self._plan.wanted.get(old)
        if wanted is None or old in self._local:
            return new
        have = self._current[old]
        target = tuple(
            [
                plan if not is_open else axes if common_prefix(plan, axes) == len(plan) else plan
                for plan, axes, is_open in zip(wanted.axes, have, wanted.is_open, strict=True)
            ]
        )
        if len(set(axis for axes in target for axis in axes)) < sum(map(len, target)):
            target = wanted.axes
        self._current[old] = target
        return self._resharded(new, have, target)

    def _on_shards(self, op: CatalogueOp, dimensions: Dimensions) -> Sequence[SSAValue] | None:
        """Returns the results of the op on shards, or None if it does not take them."""
        current = {value: self._have(value) for value in op.operands}
        assignment = self._plan.assigned(op, dimensions, current)
        if not any(assignment.axes.values()):
            return None
        shardings = [assignment.of(labels) for labels in dimensions.operands]
        shapes = [
            self._shape(value, sharding)
            for value, sharding in zip(op.operands, shardings, strict=True)
        ]
        divided = [assignment.of(labels) for labels in dimensions.results]
        results = [
            self._shape(value, sharding)
            for value, sharding in zip(op.results, divided, strict=True)
        ]  # fmt: skip
        types = [
            tensor_type(element_of(value.type), shape)
            for value, shape in zip(op.results, results, strict=True)
        ]
        changed: Mapping[str, object] = {}
        if dimensions.attributes is not None:
            changed = dimensions.attributes(shapes, results)
        if not _verifies(op, shapes, types, changed):
            return None
        operands = [
            self._sharded(value, sharding)
            for value, sharding in zip(op.operands, shardings, strict=True)
        ]
        copy = self._copy(op, operands, types, changed)
        self._record_write(op, copy, shardings)
        made: list[SSAValue] = list(copy.results)
        for value, sharding in zip(op.results, divided, strict=True):
            self._current[value] = sharding
        if made:
            made[0] = self._reduced(op, made[0], dimensions, assignment)
        return made

    def _reduced(
        self, op: CatalogueOp, value: SSAValue, dimensions: Dimensions, assignment: Assignment
    ) -> SSAValue:
        """Reduces partial results across devices, with reduce-scatter where the plan shards the
        result."""
        old = op.results[0]
        planned = self._plan[old]
        for label, how in dimensions.reduced.items():
            for axis in assignment.axes.get(label, ()):
                have = self._current[old]
                dim = next(
                    (d for d, axes in enumerate(planned) if axes == (*have[d], axis)), None
                )  # fmt: skip
                if dim is None or how != "sum":
                    value = self._parts.reduce(value, how, axis)
                    continue
                value = self._parts.reduce_scatter(value, how, dim, axis)
                self._current[old] = (*have[:dim], planned[dim], *have[dim + 1 :])
        return value

    def _shape(self, value: SSAValue, sharding: Sharding) -> tuple[int, ...]:
        return tuple(
            [
                size // prod(self._mesh[axis] for axis in axes)
                for size, axes in zip(shape_of(value.type), sharding, strict=True)
            ]
        )

    def _copy(
        self,
        op: CatalogueOp,
        operands: Sequence[SSAValue],
        types: Sequence[Attribute],
        changed: Mapping[str, object],
    ) -> CatalogueOp:
        made = _with(op, operands, types, changed)
        self._builder.insert(made)
        return made


def _rank(value: SSAValue) -> int:
    return len(shape_of(value.type))


def _with(
    op: CatalogueOp,
    operands: Sequence[SSAValue],
    types: Sequence[Attribute],
    changed: Mapping[str, object],
) -> CatalogueOp:
    """Returns a copy of an op with other operands, types and attributes."""
    properties = dict(op.properties)
    attributes = {key: value for key, value in op.attributes.items() if key not in changed}
    for key, value in changed.items():
        properties[key] = op.definition.attribute(key).kind.encode(value)
    made = type(op).create(
        operands=list(operands),
        result_types=list(types),
        properties=properties,
        attributes=attributes,
        location=op.location,
    )
    made.source_offset = op.source_offset
    return made


def _verifies(
    op: CatalogueOp,
    shapes: Sequence[Sequence[int]],
    types: Sequence[TensorType[Attribute]],
    changed: Mapping[str, object],
) -> bool:
    """Returns whether an op verifies with operands of these shapes and results of these types."""
    operands = Block(
        arg_types=[
            tensor_type(element_of(value.type), shape)
            for value, shape in zip(op.operands, shapes, strict=True)
        ]
    ).args
    tried = _with(op, operands, types, changed)
    try:
        tried.verify_()
    except VerifyException:
        return False
    finally:
        tried.drop_all_references()
    return True


# Shardings of the arguments and results of functions.
#
# Tensors are divided by ops of the function, which later stages lower to mappers, programs or
# collectives. Callers see the signature only, so that it records the shardings as well.


@dataclass(frozen=True)
class RecordChipShares(ModulePass):
    """Sets `ttcodegen.share` of arguments and results."""

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
    function.arg_attrs = _with_argument_shards(function.arg_attrs, arguments)
    function.res_attrs = _with_argument_shards(function.res_attrs, results)


def _with_argument_shards(
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
    """Returns the sharding common to all users of an argument, or None if they disagree."""
    shares = {_sharding_of_user(use.operation, value) for use in value.uses}
    return shares.pop() if len(shares) == 1 else None if shares else _whole(value)


def _sharding_of_user(op: Operation, value: SSAValue) -> Sharding:
    """Returns the sharding that an op gives a tensor replicated on all devices.

    Each device takes its shard, which may be partitioned further.
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
    """Returns the sharding of the shards that a result is assembled from."""
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
