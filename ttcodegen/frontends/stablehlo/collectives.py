"""Manual computations on a mesh (`shard_map` of jax) and their collectives."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type
from ttcodegen.dialects.ttcore.device import ONE_CHIP, MeshShape, groups_along
from ttcodegen.dialects.ttir.annotations import Sharding
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.frontends.stablehlo.bodies import block_of, reducer
from ttcodegen.frontends.stablehlo.conversion import Complex, Conversion, Results, Rule, Value
from ttcodegen.frontends.stablehlo.meshes import shardings_in
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp
from ttcodegen.ops.collectives.reference import REDUCTIONS
from ttcodegen.ops.collectives.schedule import TensorParts
from ttcodegen.ops.core.builder import OpBuilder

_OF_REPLICAS = ("all_gather", "all_reduce", "reduce_scatter")
"""Collectives whose groups list replicas and span all partitions, even with a channel."""

_PARTLY_MANUAL = re.compile(r"last_tile_dims=\{[^}]*\bmanual\b")


def _on_parts(value: Value, change: Callable[[SSAValue], SSAValue]) -> Value:
    """Applies a function to a tensor, or to both parts of a complex one."""
    if isinstance(value, Complex):
        return Complex(change(value.real), change(value.imag))
    return change(value) if isinstance(value, SSAValue) else value


def _parts(conversion: Conversion) -> TensorParts:
    return TensorParts(conversion.builder, conversion.mesh.shape)


# Manual computations


def manual_computation(conversion: Conversion, op: StableHLOOp) -> list[Value]:
    """Inlines a manual computation: its body runs on each device's shards of the operands."""
    values = conversion.values(op)
    if conversion.mesh.shape == ONE_CHIP:
        return conversion.run(block_of(op), values)
    texts = [str(_given(op, name)) for name in ("in_shardings", "out_shardings", "manual_axes")]
    manual = re.findall(r'"([^"]*)"', texts[2]) if texts[2] != "None" else None
    before, after = (
        [conversion.mesh.named(text, manual) for text in shardings_in(each)] for each in texts[:2]
    )
    if len(before) != len(values) or len(after) != len(op.results):
        raise ValueError("each operand and each result needs a sharding")
    chips, block, inside = _parts(conversion), block_of(op), conversion.on_chips
    parts = [
        _on_parts(value, lambda each, sharding=sharding: chips.divide(each, sharding, inside))
        for value, sharding in zip(values, before, strict=True)
    ]
    for part, argument in zip(parts, block.args, strict=True):
        if isinstance(part, SSAValue) and shape_of(part.type) != shape_of(argument.type):
            raise ValueError(f"a chip gets {part.type}, and the body takes {argument.type}")
    conversion.on_chips = True
    try:
        results = conversion.run(block, parts)
    finally:
        conversion.on_chips = inside
    return [
        _on_parts(result, lambda each, sharding=sharding: chips.unite(each, sharding, inside))
        for result, sharding in zip(results, after, strict=True)
    ]


def _given(op: StableHLOOp, name: str) -> object:
    """Attribute of an operation as in the source."""
    return op.given.get(name, op.properties.get(name, op.attributes.get(name)))


def full_to_shard(conversion: Conversion, op: StableHLOOp) -> Value:
    """`SPMDFullToShardShape`: divides the operand by the sharding that it was annotated with."""
    sharding = _sharding_text(op.operands[0].owner) or ""
    return _resharded(conversion, op, sharding, _parts(conversion).divide)


def shard_to_full(conversion: Conversion, op: StableHLOOp) -> Value:
    """`SPMDShardToFullShape`: assembles shards by the sharding of the result."""
    return _resharded(conversion, op, _sharding_text(op) or "", _parts(conversion).unite)


def _resharded(
    conversion: Conversion,
    op: StableHLOOp,
    text: str,
    change: Callable[[SSAValue, Sharding, bool], SSAValue],
) -> Value:
    (value,) = conversion.values(op)
    sharding = conversion.mesh.tiled(text, len(shape_of(op.operands[0].type)))
    # Within another manual computation, the axes of that one are manual before and after.
    inside = _PARTLY_MANUAL.search(text) is not None
    return _on_parts(value, lambda each: change(each, sharding, inside))


def _sharding_text(op: object) -> str | None:
    if not isinstance(op, Operation):
        return None
    sharding = op.attributes.get("mhlo.sharding", op.properties.get("mhlo.sharding"))
    return sharding.data if isinstance(sharding, StringAttr) else None


def _partition_id(conversion: Conversion, op: StableHLOOp) -> Value:
    mesh = conversion.mesh
    return _device_id(conversion, op, mesh.chips // mesh.replicas)


def _replica_id(conversion: Conversion, op: StableHLOOp) -> Value:
    return _device_id(conversion, op, conversion.mesh.replicas)


def _device_id(conversion: Conversion, op: StableHLOOp, count: int) -> Value:
    """Partition or replica id of the device, of `count`: its shard of a tensor of all ids."""
    result = op.results[0].type
    element, shape = element_of(result), shape_of(result)
    if count == 1:
        return conversion.filled(0, shape, element)
    if count != conversion.mesh.chips:
        raise ValueError("replicas of a program that is divided into partitions are not supported")
    rows, columns = conversion.mesh.shape
    numbers = conversion.constant(np.arange(rows * columns).reshape(rows, columns), element)
    sharding = ((0,) * (rows > 1), (1,) * (columns > 1))
    part = _parts(conversion).divide(numbers, sharding, conversion.on_chips)
    return conversion.builder.reshape(part, shape)


def sharded_by_name(conversion: Conversion, op: StableHLOOp) -> Results:
    """Shardy collective: only changes a value's sharding, so outside of manual computations it is
    the identity."""
    return conversion.values(op)


# Collectives


def _groups(conversion: Conversion, op: StableHLOOp) -> list[list[int]]:
    """Device groups of a collective.

    Groups are of replicas unless the op says otherwise; no groups mean one of all replicas, and a
    channel also joins the partitions of each replica
    (https://openxla.org/stablehlo/spec#all_reduce).
    """
    mesh, groups = conversion.mesh, op.get("replica_groups")
    written = (
        sorted([int(chip) for chip in group if chip >= 0] for group in groups)
        if getattr(groups, "ndim", 0) == 2
        else []
    )
    channel = op.get("channel_handle", op.get("channel_id"))
    if isinstance(channel, dict):
        channel = cast("dict[str, Any]", channel).get("handle")
    of_replicas = op.short_name in _OF_REPLICAS and not op.get("use_global_device_ids")
    all_replicas = written == [list(range(mesh.replicas))] and of_replicas
    if (not written or all_replicas) and (channel or mesh.replicas == mesh.chips):
        return [list(range(mesh.chips))]
    if not written:
        raise ValueError(f"replica_groups do not say which of {mesh.chips} chips are joined")
    return written


def _axes_of(
    mesh: MeshShape, op: StableHLOOp, written: Sequence[Sequence[int]]
) -> tuple[int | None, ...]:
    """Mesh axes that a collective's groups span, the major one first.

    None is the whole mesh in device order; empty if each group is one device. Raises CompileError
    for groups that follow no axis.
    """
    if mesh == ONE_CHIP or all(len(group) == 1 for group in written):
        return ()
    for axis in (1, 0):
        if mesh[axis] > 1 and groups_along(mesh, axis) == written:
            return (axis,)
    if written == [list(range(prod(mesh)))]:
        return (None,)
    if written == [[chip for column in groups_along(mesh, 0) for chip in column]]:
        return (1, 0)
    raise CompileError(
        f"'{op.name}': chips of a mesh of {mesh[0]}x{mesh[1]} are joined along its rows or its "
        f"columns, and replica_groups are {written}",
        op,
        remedy="let the collective go along an axis of the mesh",
    )


def _collective(
    make: Callable[[TensorParts, StableHLOOp, SSAValue, int | None], SSAValue],
    *,
    minor_first: bool = False,
    ordered: bool = True,
) -> Rule:
    """Makes the rule of a collective, applied along one mesh axis after the other.

    Identity for groups of one device. Without `ordered`, the order within groups is ignored.
    """

    def rule(conversion: Conversion, op: StableHLOOp) -> Results:
        values, groups = conversion.values(op), _groups(conversion, op)
        if not ordered:
            groups = sorted(map(sorted, groups))
        axes = _axes_of(conversion.mesh.shape, op, groups)
        if not axes:
            _require_same(op)
            return values
        chips = _parts(conversion)

        def along(value: SSAValue) -> SSAValue:
            for axis in reversed(axes) if minor_first else axes:
                value = make(chips, op, value, axis)
            return value

        return [_on_parts(value, along) for value in values]

    return rule


def _require_same(op: StableHLOOp) -> None:
    for operand, result in zip(op.operands, op.results, strict=False):
        if shape_of(operand.type) != shape_of(result.type):
            raise CompileError(
                f"'{op.name}' joins chips, and the module does not say of which mesh",
                op,
                remedy="give replica_groups, and the mesh with sdy.mesh or mhlo.num_partitions",
            )


_OF_BOOLEANS = {"or": "max", "and": "min"}
"""Numeric reductions that implement boolean ones."""


def _reduction_kind(op: StableHLOOp) -> str:
    """Reduction of a collective."""
    how = reducer(block_of(op))
    how = _OF_BOOLEANS.get(how or "", how)
    if how not in REDUCTIONS:
        raise CompileError(
            f"'{op.name}' reduces by {how or 'a body of its own'}, and chips reduce by sum, prod, "
            "max or min",
            op,
        )
    return how


def _reduce_scatter(
    chips: TensorParts, op: StableHLOOp, value: SSAValue, axis: int | None
) -> SSAValue:
    return chips.reduce_scatter(value, _reduction_kind(op), op.ints("scatter_dimension")[0], axis)


def _all_gather(chips: TensorParts, op: StableHLOOp, value: SSAValue, axis: int | None) -> SSAValue:
    return chips.gather(value, op.ints("all_gather_dim")[0], axis)


def _all_to_all(conversion: Conversion, op: StableHLOOp) -> Results:
    split, concat, count = (
        op.ints(name)[0] for name in ("split_dimension", "concat_dimension", "split_count")
    )
    groups, mesh = _groups(conversion, op), conversion.mesh.shape
    axes = _axes_of(mesh, op, groups)
    given = {"split_dim": split, "concat_dim": concat, "split_count": count}
    if len(axes) < 2:
        return _grouped(conversion, op, "all_to_all", groups, **given)
    # The whole mesh column by column: the parts are put in the order of its chips before, and in
    # the order of the group after it.
    rows, columns = mesh
    builder, in_order = conversion.builder, [list(range(rows * columns))]

    def exchanged(value: SSAValue) -> SSAValue:
        shape = list(shape_of(value.type))
        value = _swap_factors(builder, value, split, (columns, rows))
        shape[split] //= count
        shape[concat] *= count
        type_ = tensor_type(element_of(value.type), shape)
        value = builder.emit("all_to_all", [value], type_, replica_groups=in_order, **given)
        return _swap_factors(builder, value, concat, (rows, columns))

    return [_on_parts(value, exchanged) for value in conversion.values(op)]


def _swap_factors(
    builder: OpBuilder, value: SSAValue, dim: int, counts: tuple[int, int]
) -> SSAValue:
    """Swaps the two outer factors `counts` of a dimension."""
    shape, (outer, inner) = list(shape_of(value.type)), counts
    before, after = shape[:dim], shape[dim + 1 :]
    apart = [*before, outer, inner, shape[dim] // (outer * inner), *after]
    order = list(range(len(apart)))
    order[dim], order[dim + 1] = dim + 1, dim
    return builder.reshape(builder.permute(builder.reshape(value, apart), order), shape)


def _grouped(
    conversion: Conversion,
    op: StableHLOOp,
    name: str,
    groups: Sequence[Sequence[int]],
    **given: object,
) -> Results:
    """Translates a collective to a TTIR op with replica groups."""
    values = conversion.values(op)
    if not _axes_of(conversion.mesh.shape, op, groups):
        _require_same(op)
        return values

    def make(value: SSAValue, result: SSAValue) -> SSAValue:
        type_ = tensor_type(element_of(value.type), shape_of(result.type))
        return conversion.builder.emit(name, [value], type_, replica_groups=groups, **given)

    return [
        _on_parts(value, lambda each, result=result: make(each, result))
        for value, result in zip(values, op.results, strict=True)
    ]


def _collective_broadcast(conversion: Conversion, op: StableHLOOp) -> Results:
    # The first of a group sends: the order of the others does not matter.
    groups = [[first, *sorted(rest)] for first, *rest in _groups(conversion, op)]
    return _grouped(conversion, op, "collective_broadcast", groups)


def _collective_permute(conversion: Conversion, op: StableHLOOp) -> Results:
    pairs = [[int(chip) for chip in pair] for pair in op["source_target_pairs"]]
    values = conversion.values(op)
    if conversion.mesh.shape == ONE_CHIP:
        return values
    return [
        _on_parts(
            value,
            lambda each: conversion.builder.emit(
                "collective_permute", [each], each.type, source_target_pairs=pairs
            ),
        )
        for value in values
    ]


def _sum(chips: TensorParts, op: StableHLOOp, value: SSAValue, axis: int | None) -> SSAValue:
    return chips.reduce(value, "sum", axis)


def _or_shardy(rule: Rule) -> Rule:
    """Rule of a collective whose name Shardy has as well."""
    return lambda conversion, op: (
        sharded_by_name(conversion, op) if op.name.startswith("sdy.") else rule(conversion, op)
    )


def all_slice(conversion: Conversion, op: StableHLOOp) -> Results | None:
    """Composite `sdy.all_slice`: each device keeps its slice along the result's sharded dimensions.

    Returns None if the sharding of the result is not given.
    """
    value, said = conversion.value(op.operands[0]), op.get("composite_attributes")
    written = cast("dict[str, Any]", said).get("out_sharding") if isinstance(said, dict) else None
    texts = shardings_in(f"<{written}>")
    if conversion.mesh.shape == ONE_CHIP or not texts or not isinstance(value, SSAValue):
        return None
    chips, mesh = _parts(conversion), conversion.mesh
    shape, result = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    for dim, axes in enumerate(mesh.named(texts[0])):
        count, taken = shape[dim] // result[dim], len(axes)
        while prod(mesh.shape[axis] for axis in axes[taken:]) < count and taken:
            taken -= 1
        for axis in axes[taken:]:
            value = chips.partition(value, dim, axis)
    return value


RULES: dict[str, Rule] = {
    "all_gather": _or_shardy(_collective(_all_gather, minor_first=True)),
    "all_reduce": _or_shardy(
        _collective(
            lambda chips, op, value, axis: chips.reduce(value, _reduction_kind(op), axis),
            ordered=False,
        )
    ),
    "all_to_all": _or_shardy(_all_to_all),
    "collective_broadcast": _collective_broadcast,
    "collective_permute": _or_shardy(_collective_permute),
    "cross_replica_sum": _collective(_sum, ordered=False),
    "cross-replica-sum": _collective(_sum, ordered=False),
    "manual_computation": manual_computation,
    "partition_id": _partition_id,
    "reduce_scatter": _or_shardy(_collective(_reduce_scatter)),
    "replica_id": _replica_id,
}
