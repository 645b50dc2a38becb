"""Mixture of experts: `selective_reduce_combine`, which sends what `moe_gpt` leaves in the L1 of
cores (`expert_shards.py`) back to where the tokens belong."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, shape_of
from ttcodegen.dialects.operations.attribute_kinds import INTEGER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.mesh import declared_mesh, groups_along
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.collectives.groups import MESH_SHAPE
from ttcodegen.ops.collectives.reference import mesh_of
from ttcodegen.ops.collectives.tensor_shards import TensorParts
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import Call, TTIRDefinition, attribute, operand, register
from ttcodegen.ops.core.required_devices import NeededChips, integer_of, on_axis
from ttcodegen.ops.core.shape_checks import expect_rank, expect_shape, require
from ttcodegen.ops.moe.expert_shards import (
    ENTRY,
    ExpertShards,
    expect_operand,
    integers,
    line,
    ones_where_equal,
    record_stride,
)

_HEIGHT, _WIDTH = 4, 3
"""The rows of cores and the cores of a row that combine: the op does not say, and the runtime of
tt-mlir takes these (`selective_reduce_combine.cpp`), as `moe_gpt` has them by default."""
_AXIS = 0
"""The axis of the mesh along which tokens return, likewise."""


def _shards(op: CatalogueOp) -> ExpertShards:
    tokens = op.parameter("batch_size") * op.parameter("seq_size")
    experts = op.shape("dense_token_maps_tensor")[0]
    return ExpertShards(tokens, experts, op.parameter("hidden_size"), _HEIGHT, _WIDTH)


def _verify_combine(op: CatalogueOp) -> None:
    """The results of `moe_gpt`: what experts made (cores, 2, 32, hidden), records of tokens, tokens
    of experts, and their numbers; to (k, tokens of a device, hidden)."""
    for name in ("hidden_size", "batch_size", "seq_size", "select_experts_k", "experts"):
        value = op.parameter(name)
        require(op, value > 0, f"{name} of 1 or more", value)
    expect_rank(op, 2, "dense_activations_tensor", "dense_token_maps_tensor")
    shards = _shards(op)
    tokens, hidden, experts = shards.tokens, shards.hidden, shards.experts
    if shards.misfit is not None:
        require(op, False, *shards.misfit.rsplit(", found ", 1))
    known = op.parameter("experts")
    divides = experts > 0 and known % experts == 0
    require(op, divides, f"dense_token_maps_tensor of experts that divide {known}", experts)
    expect_operand(op, "dense_token_maps_tensor", (experts, (tokens + 1) * ENTRY))
    records = (1, (tokens + 1) * record_stride(experts))
    expect_operand(op, "dense_activations_tensor", records)
    counts = op.shape("dense_token_counts_tensor")
    require(op, prod(counts) >= experts, f"dense_token_counts_tensor of {experts}", counts)
    made, combining = op.shape("dense_input_tensor"), _HEIGHT * _WIDTH
    fits = len(made) == 4 and made[0] >= combining and made[1:] == (2, 32, hidden)
    message = f"dense_input_tensor of {combining} cores or more, (cores, 2, 32, {hidden})"
    require(op, fits, message, made)
    ring = declared_mesh(op)[_AXIS]
    require(op, tokens % ring == 0, f"tokens that divide among {ring} devices", tokens)
    expect_shape(op, (op.parameter("select_experts_k"), tokens // ring, hidden))


def _own_results(call: Call) -> Array:
    """(k, tokens, hidden): what the experts of one device made of tokens, zeros elsewhere."""
    tokens, hidden = call["batch_size"] * call["seq_size"], call["hidden_size"]
    maps = integers(call.array("dense_token_maps_tensor"))
    experts = len(maps)
    counts = integers(call.array("dense_token_counts_tensor")).reshape(-1)[:experts]
    records = integers(call.array("dense_activations_tensor")).reshape(tokens + 1, -1)
    record_of: dict[int, Array] = {}
    for record in records:
        if not 0 <= record[0] < tokens:
            break
        record_of.setdefault(int(record[0]), record)
    shards = ExpertShards(tokens, experts, hidden, _HEIGHT, _WIDTH)
    lists = shards.unpacked(
        call.array("dense_input_tensor"), [min(int(count), tokens) for count in counts]
    )
    whole = np.zeros((call["select_experts_k"], tokens, hidden), lists[0].dtype)
    for expert, values in enumerate(lists):
        for index, value in enumerate(values):
            token = int(maps[expert, index * ENTRY])
            record = record_of.get(token)
            if record is not None and record[1 + expert] < len(whole):
                whole[int(record[1 + expert]), token] += value
    return whole


def _combine_on_chips(calls: Sequence[Call]) -> list[Array]:
    mesh = mesh_of(calls[0])
    found: list[Array] = [np.zeros(0)] * len(calls)
    for group in groups_along(mesh, _AXIS):
        whole = sum(_own_results(calls[chip]) for chip in group)
        for chip, share in zip(group, np.split(cast("Array", whole), len(group), 1), strict=True):
            found[chip] = share
    return found


def _decompose_combine(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    shards, k = _shards(op), op.parameter("select_experts_k")
    tokens, experts, hidden = shards.tokens, shards.experts, shards.hidden
    dense = builder.operand(op, "dense_input_tensor")
    element = element_of(dense.type)
    rows = shards.unpack(builder, dense)
    counts = builder.operand(op, "dense_token_counts_tensor")
    counts = builder.reshape(counts, (1, prod(shape_of(counts.type))))
    counts = builder.typecast(builder.slice_dim(counts, 1, 0, experts), f32)
    index, valid = shards.places(builder, counts)

    def column(name: str, lists: int, first: int, count: int) -> SSAValue:
        """Columns of the entries of lists: (lists, tokens, columns), f32."""
        value = builder.operand(op, name)
        size = prod(shape_of(value.type)) // (lists * (tokens + 1))
        value = builder.reshape(value, (lists, tokens + 1, size))
        value = builder.slice(value, (0, 0, first), (lists, tokens, first + count))
        return builder.typecast(value, f32)

    def is_token(value: SSAValue) -> SSAValue:
        """A one for the token of each entry: (lists, entries, tokens)."""
        return ones_where_equal(builder, value, line(builder, tokens, 3, 2))

    # From rows of cores to tokens: of which list entry a row is, and of which token that is.
    named = is_token(column("dense_token_maps_tensor", experts, 0, 1))
    count = shape_of(index.type)[1]
    index, valid = (builder.reshape(each, (experts, count, 1)) for each in (index, valid))
    entry = ones_where_equal(builder, index, line(builder, tokens, 3, 2))
    entry = builder.broadcasting("multiply", entry, valid)
    target = builder.emit("matmul", [entry, named], TensorType(f32, [experts, count, tokens]))
    target = builder.typecast(builder.permute(target, [0, 2, 1]), element)
    made = builder.emit("matmul", [target, rows], TensorType(element, [experts, tokens, hidden]))

    # The place of an expert among those of a token, by the record of that.
    ids = column("dense_activations_tensor", 1, 0, 1)
    slots = column("dense_activations_tensor", 1, 1, experts)
    slots = builder.reshape(slots, (tokens, experts, 1))
    slots = ones_where_equal(builder, slots, line(builder, k, 3, 2))
    slots = builder.reshape(slots, (tokens, experts * k))
    owned = builder.reshape(is_token(ids), (tokens, tokens))
    owned = builder.broadcasting("multiply", owned, _before_end(builder, ids, tokens))
    places = builder.emit(
        "matmul",
        [builder.permute(owned, [1, 0]), slots],
        TensorType(f32, [tokens, experts * k]),
    )
    places = builder.permute(builder.reshape(places, (tokens, experts, k)), [0, 2, 1])
    found = builder.emit(
        "matmul",
        [builder.typecast(places, element), builder.permute(made, [1, 0, 2])],
        TensorType(element, [tokens, k, hidden]),
    )
    found = builder.permute(found, [1, 0, 2])
    mesh = declared_mesh(op)
    if mesh[_AXIS] > 1:
        found = TensorParts(builder, mesh).reduce_scatter(found, "sum", 1, _AXIS)
    return builder.typecast(found, op.result_type.element_type)


def _before_end(builder: OpBuilder, ids: SSAValue, tokens: int) -> SSAValue:
    """(entries, 1): a one for each entry before the first that names no token, which ends the list;
    of numbers of tokens in f32."""
    ids = builder.reshape(ids, (tokens, 1))

    def are(name: str, limit: float) -> SSAValue:
        return builder.broadcasting(name, ids, builder.full((1, 1), limit, f32), element=i1)

    ends = builder.like("logical_or", are("lt", 0.0), are("gt", tokens - 0.5))
    passed = builder.like("cumsum", builder.typecast(ends, f32), dim=0)
    return ones_where_equal(builder, passed, builder.full((1, 1), 0.0, f32))


def _chips_of_combine(op: Operation) -> NeededChips:
    """As many as it takes for all experts, and along the axis as tokens divide among."""
    maps = shape_of(op.operands[2].type) if len(op.operands) > 2 else ()
    result = shape_of(op.results[0].type)
    batch, sequence, known = (
        integer_of(op, name) or 0 for name in ("batch_size", "seq_size", "experts")
    )
    if not maps or 0 in (maps[0], known) or len(result) < 2 or not result[1]:
        return NeededChips()
    total = known // maps[0] if known % maps[0] == 0 else 1
    return NeededChips(on_axis(_AXIS, max(batch * sequence // result[1], 1)), total)


register(
    TTIRDefinition(
        "ttir.selective_reduce_combine",
        tuple(
            operand(f"dense_{name}_tensor")
            for name in ("input", "activations", "token_maps", "token_counts")
        ),
        (
            attribute("hidden_size", INTEGER),
            attribute("batch_size", INTEGER),
            attribute("seq_size", INTEGER),
            attribute("select_experts_k", INTEGER),
            attribute("experts", INTEGER),
            MESH_SHAPE,
        ),
        verify=_verify_combine,
        numpy=_own_results,
        chips=_combine_on_chips,
        decompose=_decompose_combine,
        needed_chips=_chips_of_combine,
    )
)
