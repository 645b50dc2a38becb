"""Collectives and point-to-point transfers; types are those of one device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, reduce, wraps
from math import prod
from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.dialects.operations.attribute_kinds import ENUMERATOR, INTEGER, INTEGERS
from ttcodegen.dialects.operations.operation import (
    AttributeSpec,
    CatalogueOp,
    ChipsMeaning,
    operation_name,
)
from ttcodegen.dialects.ttcore.device import (
    ONE_CHIP,
    MeshShape,
    declared_mesh,
    shape_in,
    two_dimensional,
)
from ttcodegen.dialects.ttnn.placement import given_placement
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.collectives import reference as mesh_values
from ttcodegen.ops.collectives.device_calls import Chips
from ttcodegen.ops.collectives.reference import (
    CHIP_GROUPS,
    GATHER_DIMS,
    MESH_SHAPE,
    SCATTER_DIMS,
    axis_of_groups,
    chips_of_collective,
    dim_of,
    first_given,
    groups_of,
    mesh_axis,
    mesh_of,
    verify_all_gather,
    verify_all_reduce,
    verify_all_to_all,
    verify_broadcast,
    verify_partition,
    verify_permute,
    verify_reduce_scatter,
)
from ttcodegen.ops.collectives.schedule import (
    TensorParts,
    axis_of_pairs,
    broadcast_in_steps,
    exchange_in_steps,
    fold_splat,
    gather_in_steps,
    partition_in_steps,
    permute_in_steps,
    reduce_in_steps,
)
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import NULLOPT, Argument, CppCalls, Text
from ttcodegen.ops.core.definition import (
    Call,
    PrimitiveLowering,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    optional,
    register,
    with_trait,
)
from ttcodegen.ops.core.dimensions import expect_element, expect_shape
from ttcodegen.ops.core.lowering import CpuLowering, cpu_call
from ttcodegen.ops.core.traits import (
    CallKind,
    ChipMovement,
    ChipMovementRule,
    Trait,
    integer_of,
)

# Collectives. Types are those of one device; on a mesh of one device they are the identity, as the
# reference system folds them.
#
# Semantics: TTIROps.td and the goldens of tt-mlir (2026).


def _named(*names: str) -> tuple[AttributeSpec, ...]:
    return tuple(attribute(name, INTEGER, None) for name in names)


_AXIS = _named("cluster_axis", "num_links")
_REDUCTION = attribute("reduce_type", ENUMERATOR, "sum")
_GROUPS = attribute("replica_groups", CHIP_GROUPS, None)
_PAIRS = attribute("source_target_pairs", CHIP_GROUPS, None)


# Numpy semantics


def all_gather(calls: Sequence[Call]) -> list[Array]:
    dim = first_given(calls[0].attributes.get, GATHER_DIMS)
    return mesh_values.gathered(calls, dim or 0, calls[0]["cluster_axis"])


def all_reduce(calls: Sequence[Call]) -> list[Array]:
    first = calls[0]
    return mesh_values.all_reduced(calls, first["reduce_type"], first["cluster_axis"])


def reduce_scatter(calls: Sequence[Call]) -> list[Array]:
    first = calls[0]
    dim = first_given(first.attributes.get, SCATTER_DIMS) or 0
    return mesh_values.reduce_scattered(calls, first["reduce_type"], dim, first["cluster_axis"])


def mesh_partition(calls: Sequence[Call]) -> list[Array]:
    return mesh_values.partitioned(calls, calls[0]["dim"], calls[0]["cluster_axis"])


def _collective_permute(calls: Sequence[Call]) -> list[Array]:
    return mesh_values.permuted(calls, _rows_of(calls[0], "source_target_pairs") or ())


def _rows_of(call: Call, name: str) -> list[list[int]] | None:
    """Returns rows of device numbers, which a flatbuffer holds as an array."""
    rows = call[name]
    return None if rows is None else [[int(chip) for chip in row] for row in rows]


def _groups_of(call: Call) -> list[list[int]]:
    groups = _rows_of(call, "replica_groups")
    return groups if groups is not None else [list(range(prod(mesh_values.mesh_of(call))))]


def _collective_broadcast(calls: Sequence[Call]) -> list[Array]:
    return mesh_values.broadcast_in_groups(calls, _groups_of(calls[0]))


def _all_to_all(calls: Sequence[Call]) -> list[Array]:
    first = calls[0]
    dims = first["split_dim"], first["concat_dim"]
    return mesh_values.exchanged(calls, _groups_of(first), *dims)


def same_values(call: Call) -> Array:
    """Returns the operand: the result on each device."""
    return call.array("input")


# Lowering


@cache
def collectives() -> frozenset[str]:
    """Returns the names of all collectives, without dialect."""
    return frozenset(name.removeprefix("ttir.") for name in with_trait(Trait.COLLECTIVE))


def is_local(op: Operation) -> bool:
    """True if a collective of any dialect is the identity.

    The module names no mesh of several devices, operand and result have one shape, and no pair
    sends from another device.
    """
    tensors = [value for value in op.operands if isinstance(value.type, TensorType)]
    if not tensors or shape_of(tensors[0].type) != shape_of(op.results[0].type):
        return False
    pairs = op.properties.get("source_target_pairs", op.attributes.get("source_target_pairs"))
    if pairs is not None and any(INTEGERS.decode(pairs)):
        return False
    return _mesh_around(op) == ONE_CHIP


def expect_collective(op: Operation) -> None:
    """Verifies dimensions, axis and reduction of a TTNN collective, even if it is local.

    Raises:
        CompileError: if a dimension or axis is out of range, or the reduction is not a sum.
    """
    name = operation_name(op)
    rank = len(shape_of(op.operands[0].type))
    for attribute_name in (*GATHER_DIMS, *SCATTER_DIMS):
        dim = integer_of(op, attribute_name)
        if dim is not None and not -rank <= dim < rank:
            raise CompileError(
                f"{name}: dimension {dim} is out of range for a tensor of rank {rank}", op
            )
    axis = integer_of(op, "cluster_axis")
    if axis is not None and not 0 <= axis < 2:
        raise CompileError(f"{name}: a mesh has the axes 0 and 1, found cluster_axis {axis}", op)
    how = op.properties.get("reduce_type", op.attributes.get("reduce_type"))
    if how is not None and ENUMERATOR.decode(how) != "sum":
        raise CompileError(
            f"{name}: expected a reduce_type of 'sum', as the library reduces, found {how}", op
        )


def _mesh_around(op: Operation) -> MeshShape:
    """Returns the mesh of an op, from its device operand or else its module."""
    for value in op.operands:
        if isinstance(value.owner, Operation) and shape_in(value.owner):
            return two_dimensional(shape_in(value.owner)) or ONE_CHIP
    return declared_mesh(op)


def keep_local(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Returns the operand of a collective that is local, else None."""
    return builder.operand(op, "input") if is_local(op) else None


def _decompose(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    local = keep_local(builder, op)
    return fold_splat(builder, op) if local is None else local


def _decompose_reduction(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Gathers and multiplies for "prod", which no ttnn call computes over devices.

    The product has the type of the operand; the library's prod of a dimension is bf16 only.
    """
    found = _decompose(builder, op)
    if found is not None or op.parameter("reduce_type") != "prod":
        return found
    parts, axis = TensorParts(builder, declared_mesh(op)), mesh_axis(op)
    value, shape = builder.operand(op, "input"), op.shape("input")
    gathered = parts.gather(builder.reshape(value, (1, *shape)), 0, axis)
    count = shape_of(gathered.type)[0]
    factors = [builder.slice_dim(gathered, 0, chip, chip + 1) for chip in range(count)]
    product = reduce(lambda a, b: builder.broadcasting("multiply", a, b), factors)
    product = builder.reshape(product, shape)
    if op.result_shape == shape:
        return product
    return parts.partition(product, dim_of(op, *SCATTER_DIMS), axis)


Lower = Callable[[Chips, CatalogueOp, SSAValue], SSAValue]


def _lowering(lower: Lower) -> Callable[[OpBuilder, CatalogueOp], SSAValue]:
    """Lowers to ttnn calls, or to the operand if the collective is local."""

    def lowering(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
        value = builder.operand(op, "input")
        return value if is_local(op) else lower(Chips(builder, op), op, value)

    return lowering


def _lower_reduce_scatter(chips: Chips, op: CatalogueOp, value: SSAValue) -> SSAValue:
    dim = dim_of(op, *SCATTER_DIMS)
    return chips.reduce_scatter(value, op.parameter("reduce_type"), dim, mesh_axis(op))


def _group_axis(op: CatalogueOp) -> int | None:
    """Returns the mesh axis of the replica groups, None for one group of all devices.

    Raises VerifyException for other groups.
    """
    reason = _other_groups(op)
    if reason is not None:
        raise VerifyException(f"{op.name}: {reason}")
    return axis_of_groups(declared_mesh(op), groups_of(op))


def _other_groups(op: CatalogueOp) -> str | None:
    """Returns why the replica groups are unsupported, None if they are supported."""
    mesh, groups = declared_mesh(op), groups_of(op)
    if axis_of_groups(mesh, groups) is not None or groups == [list(range(prod(mesh)))]:
        return None
    return (
        f"chips of a mesh of {mesh[0]}x{mesh[1]} are joined along its rows or its columns, or all "
        f"of them in their order, and replica_groups are {groups}"
    )


def _lower_all_to_all(chips: Chips, op: CatalogueOp, value: SSAValue) -> SSAValue:
    return chips.exchange(value, *_exchanged_dims(op), _group_axis(op))


_EXCHANGE = ("split", "concat")


def _exchanged_dims(op: CatalogueOp) -> tuple[int, int]:
    """Returns the split and concat dimensions of `all_to_all`."""
    split, concat = (dim_of(op, f"{name}_dim") for name in _EXCHANGE)
    return split, concat


# Data movement along one mesh axis


def _gathering(op: CatalogueOp) -> ChipMovement | None:
    axis = mesh_values.only_axis(declared_mesh(op), mesh_axis(op))
    return None if axis is None else ChipMovement(axis, None, dim_of(op, *GATHER_DIMS))


def _partition(op: CatalogueOp) -> ChipMovement | None:
    axis = mesh_values.only_axis(declared_mesh(op), mesh_axis(op))
    return None if axis is None else ChipMovement(axis, dim_of(op, "dim"), None)


def _exchange(op: CatalogueOp) -> ChipMovement | None:
    mesh = declared_mesh(op)
    axis = axis_of_groups(mesh, groups_of(op))
    if axis is None or mesh[axis] == 1:
        return None
    return ChipMovement(axis, *_exchanged_dims(op))


def _broadcast(op: CatalogueOp) -> ChipMovement | None:
    mesh = declared_mesh(op)
    axis = axis_of_groups(mesh, groups_of(op))
    if axis is None or mesh[axis] == 1:
        return None
    return ChipMovement(axis, pairs=_from_first(op))


def _sending(op: CatalogueOp) -> ChipMovement | None:
    pairs = _pairs(op)
    axis = axis_of_pairs(declared_mesh(op), pairs)
    return ChipMovement(axis, pairs=pairs) if pairs and axis is not None else None


def _pairs(op: CatalogueOp) -> tuple[tuple[int, int], ...]:
    """Returns the (source, target) pairs of a permute."""
    return tuple((source, target) for source, target in op.parameter("source_target_pairs") or ())


def _from_first(op: CatalogueOp) -> tuple[tuple[int, int], ...]:
    """Returns pairs from the first device of each group to all of the group."""
    return tuple((group[0], chip) for group in groups_of(op) for chip in group)


# CPU lowering, between device programs


MESH_ON_CPU = "mesh"
"""Header of `support/cpu` with the exchanges between devices."""


def _exchange_on_cpu(
    *dims: str, first_axis: int = 0, reduces: bool = False, function: str = ""
) -> CpuLowering:
    """CPU call with the mesh axes in order of exchange and a dimension attribute.

    The dimension is the first of the attributes `dims` that is set.
    """

    def exchange(op: CatalogueOp) -> Mapping[str, Any]:
        mesh = declared_mesh(op)
        return {
            "mesh": mesh,
            "axes": mesh_values.axes_of(mesh, mesh_axis(op), first=first_axis),
            "dim": dim_of(op, *dims) if dims else None,
            "reduction": op.parameter("reduce_type") if reduces else None,
        }

    return cpu_call(MESH_ON_CPU, exchange, function=function)


def _grouping_on_cpu(op: CatalogueOp) -> Mapping[str, Any]:
    split, concat = _exchanged_dims(op)
    return {"groups": groups_of(op), "split": split, "concat": concat}


# The ops


def _register(
    name: str,
    attributes: tuple[AttributeSpec, ...],
    verify: Callable[[CatalogueOp], None],
    chips: ChipsMeaning,
    lower: Lower,
    cpu: CpuLowering,
    refused_form: Callable[[CatalogueOp], str | None] | None = None,
    moves: bool = True,
    primitives: PrimitiveLowering | None = None,
    between_chips: ChipMovementRule | None = None,
    decompose: PrimitiveLowering = _decompose,
) -> None:
    @wraps(verify)
    def verify_all(op: CatalogueOp) -> None:
        expect_element(op, "input")
        verify(op)

    register(
        TTIRDefinition(
            f"ttir.{name}",
            (operand("input"),),
            (*attributes, MESH_SHAPE),
            verify=verify_all,
            numpy=same_values,
            chips=chips,
            decompose=decompose,
            lower=_lowering(lower),
            cpu=cpu,
            primitives=primitives,
            refused_form=refused_form,
            moves=moves,
            between_chips=between_chips,
            needed_chips=chips_of_collective,
            traits=Trait.COLLECTIVE,
        )
    )


GATHER = (*_named(*GATHER_DIMS), *_AXIS)
SUM = (_REDUCTION, *_named("scatter_dim", "scatter_num"), *_AXIS)
SCATTER = (_REDUCTION, *_named(*SCATTER_DIMS), *_AXIS)
PARTITION = (attribute("dim", INTEGER), attribute("cluster_axis", INTEGER, None))

_register(
    "all_gather",
    GATHER,
    verify_all_gather,
    all_gather,
    lambda chips, op, value: chips.gather(value, dim_of(op, *GATHER_DIMS), mesh_axis(op)),
    _exchange_on_cpu(*GATHER_DIMS, first_axis=1),
    primitives=lambda builder, op: gather_in_steps(
        builder, op, mesh_axis(op), dim_of(op, *GATHER_DIMS)
    ),
    between_chips=_gathering,
)
for _name in ("all_reduce", "all_reduce_async"):
    _register(
        _name,
        SUM,
        verify_all_reduce,
        all_reduce,
        lambda chips, op, value: chips.reduce(value, op.parameter("reduce_type"), mesh_axis(op)),
        _exchange_on_cpu(reduces=True, function="all_reduce"),
        moves=False,
        primitives=lambda builder, op: reduce_in_steps(builder, op, mesh_axis(op), None),
        decompose=_decompose_reduction,
    )
_register(
    "reduce_scatter",
    SCATTER,
    verify_reduce_scatter,
    reduce_scatter,
    _lower_reduce_scatter,
    _exchange_on_cpu(*SCATTER_DIMS, reduces=True),
    moves=False,
    primitives=lambda builder, op: reduce_in_steps(
        builder, op, mesh_axis(op), dim_of(op, *SCATTER_DIMS)
    ),
    decompose=_decompose_reduction,
)
_register(
    "mesh_partition",
    PARTITION,
    verify_partition,
    mesh_partition,
    lambda chips, op, value: chips.partition(value, dim_of(op, "dim"), mesh_axis(op)),
    _exchange_on_cpu("dim"),
    primitives=lambda builder, op: partition_in_steps(
        builder, op, mesh_axis(op), dim_of(op, "dim")
    ),
    between_chips=_partition,
)
_register(
    "all_to_all",
    (
        *(attribute(f"{n}_dim", INTEGER) for n in _EXCHANGE),
        attribute("split_count", INTEGER),
        _GROUPS,
    ),
    verify_all_to_all,
    _all_to_all,
    _lower_all_to_all,
    cpu_call(MESH_ON_CPU, _grouping_on_cpu),
    _other_groups,
    primitives=lambda builder, op: exchange_in_steps(
        builder, op, _group_axis(op), *_exchanged_dims(op)
    ),
    between_chips=_exchange,
)
_register(
    "collective_broadcast",
    (_GROUPS,),
    verify_broadcast,
    _collective_broadcast,
    lambda chips, op, value: chips.first_of_group(value, _group_axis(op)),
    cpu_call(MESH_ON_CPU, lambda op: {"pairs": _from_first(op)}, function="collective_permute"),
    _other_groups,
    primitives=lambda builder, op: broadcast_in_steps(builder, op, _group_axis(op)),
    between_chips=_broadcast,
)
_register(
    "collective_permute",
    (_PAIRS,),
    verify_permute,
    _collective_permute,
    lambda chips, op, value: chips.permute(value, op.parameter("source_target_pairs") or []),
    cpu_call(MESH_ON_CPU, lambda op: {"pairs": _pairs(op)}),
    primitives=lambda builder, op: permute_in_steps(builder, op, _pairs(op)),
    between_chips=_sending,
)


# Point-to-point transfer between two devices of a mesh row or column.

_COORDINATES = ("receive_coord", "send_coord")


def _verify(op: CatalogueOp) -> None:
    """Both devices are in one row or column of the mesh; `kept` has the type of the sent tensor."""
    mesh = declared_mesh(op)
    receiver, sender = coordinates = [list(op.parameter(name)) for name in _COORDINATES]
    for place in coordinates:
        if not _is_in(mesh, place):
            raise VerifyException(f"{op.name}: the mesh of {mesh[0]}x{mesh[1]} has no chip {place}")
    if sender == receiver or not any(s == r for s, r in zip(sender, receiver, strict=True)):
        raise VerifyException(
            f"{op.name}: a chip sends to another one of its row or its column, found {sender} and "
            f"{receiver}"
        )
    kept = op.optional_operand("kept")
    if kept is not None:
        value = op.operand("input")
        if op.shape("kept") != op.shape("input") or element_of(kept.type) != element_of(value.type):
            raise VerifyException(f"{op.name}: sends {value.type} into {kept.type}")
    expect_shape(op, op.shape("input"))


def _is_in(mesh: MeshShape, place: Sequence[int]) -> bool:
    return len(place) == 2 and all(0 <= at < size for at, size in zip(place, mesh, strict=True))


def _reference(calls: Sequence[Call]) -> list[Array]:
    """Reference values: the receiver has the sent tensor, others their `kept` one or zeros.

    Without `kept` the op leaves the values of other devices undefined.
    """
    columns = mesh_of(calls[0])[1]
    receiver, sender = (_number(calls[0][name], columns) for name in _COORDINATES)
    kept = [call.optional("kept") for call in calls]
    sent = calls[sender].array("input")
    found: list[Array] = [np.zeros(sent.shape, sent.dtype) if own is None else own for own in kept]
    found[receiver] = sent
    return found


def _number(place: Sequence[int], columns: int) -> int:
    return int(place[0]) * columns + int(place[1])


def _cpp(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include("ttnn/operations/point_to_point/point_to_point.hpp")
    coordinates = [
        Text(f"/*{name}=*/ttnn::MeshCoordinate({', '.join(map(str, op.parameter(given)))})")
        for name, given in zip(("receiver_coord", "sender_coord"), _COORDINATES, strict=True)
    ]
    arguments: list[Argument] = [calls[op.operand("input")], *coordinates]
    if op.optional_operand("kept") is not None:
        arguments += [Text("ttnn::ccl::Topology::Linear"), _output_tensor(calls, op)]
    calls.bind(op.results[0], calls.call("ttnn::point_to_point", *arguments))


def _output_tensor(calls: CppCalls, op: CatalogueOp) -> Argument:
    """Returns the tensor that the call writes to.

    The result of another transfer is reused if nothing else reads it; otherwise `kept` is cloned to
    the memory of the operand.
    """
    kept = op.operand("kept")
    placed, wanted = (given_placement(op.operand(name)) for name in ("kept", "input"))
    readers = [use for use in kept.uses if use.operation.name != "ttnn.deallocate"]
    is_received = isinstance(kept.owner, CatalogueOp) and kept.owner.name == op.name
    if is_received and len(readers) == 1 and placed == wanted:
        return calls[kept]
    memory = NULLOPT if placed == wanted or wanted is None else calls.memory_config(wanted)
    calls.include("ttnn/operations/data_movement/clone/clone.hpp")
    return calls.nested("ttnn::clone", calls[kept], NULLOPT, memory, NULLOPT)


register(
    TTNNDefinition(
        "ttnn.point_to_point",
        (operand("input"), optional("kept")),
        (*(attribute(name, INTEGERS) for name in _COORDINATES), MESH_SHAPE),
        verify=_verify,
        numpy=same_values,
        chips=_reference,
        cpp=_cpp,
        result_rules=(ResultRule(),),
        traits=Trait.COLLECTIVE,
        call_kind=CallKind.COLLECTIVE,
        nouns=("received",),
    )
)
