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

# Divides what a module computes among the chips of its mesh.
#
# A module may say how tensors are divided (`ttcore.sharding`) and leave open what each chip
# computes. Each op becomes one on parts: its operands are brought into the parts that it needs,
# and where chips have parts of a sum, they add them up. An op that has no rule for parts gets
# whole operands, so that what is computed is always that of one chip.


@dataclass(frozen=True)
class TTIRPartition(ModulePass):
    """Replaces `ttcore.sharding` by parts of tensors and ops between chips."""

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
    """Makes `linear` with a bias a matmul and a sum: devices that have parts of the inner dimension
    add the bias once, after their products are added up."""
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
    """True for a `linear` with a row for a bias, whose result has the shape of its product."""
    if op.name != "ttir.linear" or not isinstance(op, CatalogueOp) or len(op.operands) < 3:
        return False
    bias, b = op.shape("bias"), op.shape("b")
    if not bias or prod(bias) != bias[-1] or dimensions_of(op) is None:
        return False
    return op.result_shape[-1] == b[-2 if op.parameter("transpose_b") else -1]


def _drop_shardings(function: FuncOp) -> None:
    """Takes the attributes off that have been read."""

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
    """Rebuilds a function of whole tensors as one of parts."""

    def __init__(self, function: FuncOp, mesh: MeshShape) -> None:
        self._function = function
        self._mesh = mesh
        self._plan = Propagation(function, mesh)
        self._current: dict[SSAValue, Sharding] = {}
        """Current sharding of each computed value of the old function."""
        self._on_chips: set[SSAValue] = set()
        """Values of manual computations: each chip has its own."""
        self._made: dict[SSAValue, dict[Sharding, SSAValue]] = {}
        """The parts of values of the old function, by how they are divided."""
        self._overwritten: dict[SSAValue, CatalogueOp] = {}
        """Values of the old function whose elements an op replaced: its parts are the value."""
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
        # Arguments that are only returned, and values that leave the chips.
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
        """The whole of a value of the old function, for which the new one has `value`."""
        if old in self._overwritten:
            sharding = self._current[old]
            return self._parts.unite(self._made[old][sharding], sharding, inside=False)
        if old in self._on_chips or isinstance(old, BlockArgument):
            return value
        return self._parts.unite(value, self._current[old], inside=False)

    def _refuse_lost_writes(self, returned: Sequence[SSAValue]) -> None:
        """Raises CompileError if an op overwrites an argument that is not returned: only the chips
        have its new elements, and the caller has the whole of it."""
        for value, op in self._overwritten.items():
            parts = self._made[value][self._current[value]]
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

    def _divided(self, value: SSAValue, wanted: Sharding) -> SSAValue:
        """The parts of a value that a sharding makes."""
        if value in self._on_chips:
            return self._builder[value]
        made = self._made.setdefault(value, {})
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

    def _overwrite(self, op: CatalogueOp, made: CatalogueOp, shardings: Sequence[Sharding]) -> None:
        """Records the new value of an operand that an op overwrites."""
        name = op.definition.in_place
        if name is None:
            return
        old = op.operand(name)
        place = list(op.operands).index(old)
        sharding = shardings[place]
        self._overwritten[old] = op
        self._current[old] = sharding
        self._made[old] = {sharding: made.operands[place]}

    def _resharded(self, part: SSAValue, have: Sharding, wanted: Sharding) -> SSAValue:
        """Gathers what is divided otherwise, then takes the share of each chip."""
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
            return [self._between(op)]
        if works_between_chips(op) or any(v in self._on_chips for v in op.operands):
            self._on_chips.update(op.results)
            types = [result.type for result in op.results]
            return self._copy(op, self._whole(op.operands), types, {}).results
        dimensions = dimensions_of(op)
        results = None if dimensions is None else self._in_parts(op, dimensions)
        if results is None:
            made = self._copy(
                op, self._whole(op.operands), [result.type for result in op.results], {}
            )
            results = made.results
            self._overwrite(op, made, [undivided(_rank(value)) for value in op.operands])
            for result in op.results:
                self._current[result] = undivided(len(shape_of(result.type)))
        return [self._placed(old, new) for old, new in zip(op.results, results, strict=True)]

    def _between(self, op: CatalogueOp) -> SSAValue:
        """Enters or leaves a manual computation."""
        (value,), sharding = op.operands, sharding_of_parts(op)
        if op.parameter("shard_direction") == "shard_to_full":
            self._current[op.results[0]] = sharding
            return self._placed(op.results[0], self._divided(value, sharding))
        self._on_chips.add(op.results[0])
        if value in self._on_chips:
            return self._copy(op, [self._builder[value]], [op.result_type], {}).results[0]
        return self._divided(value, sharding)

    def _whole(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        return [self._divided(value, undivided(_rank(value))) for value in values]

    def _placed(self, old: SSAValue, new: SSAValue) -> SSAValue:
        """A new value, divided as the function says, if it says so."""
        wanted = self._plan.wanted.get(old)
        if wanted is None or old in self._on_chips:
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

    def _in_parts(self, op: CatalogueOp, dimensions: Dimensions) -> Sequence[SSAValue] | None:
        """The op on parts; None if it does not take them."""
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
        if not _takes(op, shapes, types, changed):
            return None
        operands = [
            self._divided(value, sharding)
            for value, sharding in zip(op.operands, shardings, strict=True)
        ]
        copy = self._copy(op, operands, types, changed)
        self._overwrite(op, copy, shardings)
        made: list[SSAValue] = list(copy.results)
        for value, sharding in zip(op.results, divided, strict=True):
            self._current[value] = sharding
        if made:
            made[0] = self._reduced(op, made[0], dimensions, assignment)
        return made

    def _reduced(
        self, op: CatalogueOp, value: SSAValue, dimensions: Dimensions, assignment: Assignment
    ) -> SSAValue:
        """Reduces partial results across devices, scattering them at once where requested."""
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
    """An op like another one, with other operands, types and attributes."""
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


def _takes(
    op: CatalogueOp,
    shapes: Sequence[Sequence[int]],
    types: Sequence[TensorType[Attribute]],
    changed: Mapping[str, object],
) -> bool:
    """True if an op takes operands of these shapes, and gives results of these types."""
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


# Records how the arguments and results of functions are divided among the chips of the mesh.
#
# What divides a tensor is an op of its function, which later stages make calls of mappers,
# programs or exchanges of. Who calls the function sees its arguments only: they say it as well.


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
