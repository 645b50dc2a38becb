"""Mixture of experts: `moe_gpt`, and its prepared weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.core.datatypes import bf16, element_of, f32, shape_of, ui16
from ttcodegen.dialects.operations.attribute_kinds import INTEGER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import declared_mesh
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.collectives.reference import MESH_SHAPE
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import Call, TTIRDefinition, attribute, operand, register
from ttcodegen.ops.core.dimensions import expect_rank, expect_shape, require
from ttcodegen.ops.core.engine import places
from ttcodegen.ops.core.traits import NeededChips, Trait
from ttcodegen.ops.moe.compute import GATES, emit_gate
from ttcodegen.ops.moe.routing import chosen_experts, expert_operand, experts_here, owner_table
from ttcodegen.ops.moe.selective_reduce_combine import (
    ENTRY,
    NO_ENTRY,
    ExpertShards,
    aligned,
    all_bits,
    bytes_of,
    expect_operand,
    integers,
    line,
    ones_where_equal,
    record_stride,
    select_rows,
)

# Weights of experts in the order in which the cores of `moe_gpt` read them.
#
# Each core holds some tile columns: of gate and up weights (cores, layers, experts, pairs, rows,
# 128), four tiles in a pair: gate, up, gate, up; and of down weights (cores, layers, experts, 2,
# rows, 128), four tiles in each half. A core with one tile less has a zero tile at its end. The
# rows of down weights are ordered by the gate and up columns of the cores: first those of the core
# itself, then those of the previous core, and so on around the ring. A last tile of rows is the
# bias, as the sum of its rows (a matmul with ones in `moe_gpt/device/kernels/compute.cpp` of
# tt-metal; `test_moe_gpt_e2e.py` prepares weights this way).

_TILE = 32
_DOWN_TILES = 8
"""Tile columns of down weights per core; some cores have one less."""


def _tiles_of_cores(total: int, cores: int, most: int) -> list[int] | None:
    """Returns the number of tiles of each core, None if they do not add up to `total`.

    Each core has `most` or, on the third and fourth of each four, one tile less.
    """
    for less in (0, 1):
        tiles = [most - less * (core % 4 > 1) for core in range(cores)]
        if sum(tiles) == total:
            return tiles
    return None


@dataclass(frozen=True)
class ExpertWeights:
    """Layout of expert weights: the columns of each core and the bias rows."""

    cores: int
    experts: int
    hidden: int
    inner: int
    has_bias: bool
    inner_tiles: tuple[int, ...]
    hidden_tiles: tuple[int, ...]

    @staticmethod
    def of(gate_up: Sequence[int], down: Sequence[int], hidden: int) -> ExpertWeights | str:
        """Derives the layout from both weight shapes and the hidden size of tokens.

        Returns a string that says what was expected and found if they do not fit.
        """
        cores, _, experts, pairs, rows, _ = gate_up
        if rows not in (hidden, hidden + _TILE):
            return (
                f"w0_w1_tensor of {hidden} rows, or of {hidden + _TILE} with biases, found {rows}"
            )
        has_bias = rows > hidden
        inner = down[4] - _TILE * has_bias
        if hidden % _TILE or inner % _TILE or inner <= 0:
            return f"rows of whole tiles, found {hidden} and {inner}"
        tiles = _tiles_of_cores(inner // _TILE, cores, 2 * pairs)
        if tiles is None:
            most = 2 * pairs
            return (
                f"columns of w0_w1_tensor for the {inner // _TILE} tiles of rows of w2_tensor, "
                f"found {cores} cores with {most} each"
            )
        columns = _tiles_of_cores(hidden // _TILE, cores, _DOWN_TILES)
        if columns is None:
            return (
                f"a hidden_size of {_DOWN_TILES} tiles for each of {cores} cores, or one less for "
                f"the third and fourth of each four, found {hidden // _TILE} tiles"
            )
        return ExpertWeights(cores, experts, hidden, inner, has_bias, tuple(tiles), tuple(columns))

    def _parts_of_rows(self, core: int) -> list[tuple[int, int]]:
        """Returns the row ranges of a core that match the columns of each core, in core order."""
        ranges: dict[int, tuple[int, int]] = {}
        begin = 0
        for step in range(self.cores):
            source = (core - step) % self.cores
            size = self.inner_tiles[source] * _TILE
            ranges[source] = (begin, begin + size)
            begin += size
        parts = [ranges[source] for source in range(self.cores)]
        return [*parts, (begin, begin + _TILE)] if self.has_bias else parts

    # numpy

    def gate_and_up(self, packed: Array, layer: int) -> list[Array]:
        """Returns gate and up weights, each (experts, rows, inner)."""
        values = packed[:, layer].reshape(*packed[:, layer].shape[:4], 2, 2, _TILE)
        # cores, experts, pairs, rows, tile of the pair, gate or up, column
        values = np.transpose(values, (5, 1, 3, 0, 2, 4, 6))
        values = values.reshape(*values.shape[:4], -1)
        return [
            np.concatenate(
                [each[:, :, core, : tiles * _TILE] for core, tiles in enumerate(self.inner_tiles)],
                axis=2,
            )
            for each in values
        ]

    def down(self, packed: Array, layer: int) -> Array:
        """Returns down weights, (experts, rows, hidden)."""
        values = np.transpose(packed[:, layer], (0, 1, 3, 2, 4))
        values = values.reshape(*values.shape[:3], -1)
        columns: list[Array] = []
        for core, tiles in enumerate(self.hidden_tiles):
            own = values[core, :, :, : tiles * _TILE]
            parts = [own[:, begin:end] for begin, end in self._parts_of_rows(core)]
            columns.append(np.concatenate(parts, axis=1))
        return np.concatenate(columns, axis=2)

    def product(self, values: Array, weight: Array) -> Array:
        """Matmul of rows with a weight, plus its bias."""
        rows = values.shape[-1]
        made = values @ weight[:, :rows]
        return made + weight[:, rows:].sum(axis=1, keepdims=True) if self.has_bias else made

    # TTIR ops

    def emit_gate_and_up(self, builder: OpBuilder, packed: SSAValue, layer: int) -> list[SSAValue]:
        """Emits `gate_and_up` in TTIR ops."""
        cores, _, experts, pairs, rows, _ = shape_of(packed.type)
        values = builder.slice_dim(packed, 1, layer, layer + 1)
        values = builder.reshape(values, (cores * experts * pairs, rows, 4 * _TILE))
        found: list[SSAValue] = []
        for which in (0, 1):
            halves: list[SSAValue] = []
            for pair in (0, 1):
                begin = (2 * pair + which) * _TILE
                half = builder.slice_dim(values, 2, begin, begin + _TILE)
                halves.append(builder.reshape(half, (cores * experts * pairs, 1, rows, _TILE)))
            tiles = builder.concat(halves, 1)
            tiles = builder.reshape(tiles, (cores, experts, 2 * pairs * rows, _TILE))
            columns: list[SSAValue] = []
            for core, count in enumerate(self.inner_tiles):
                own = builder.slice_dim(tiles, 0, core, core + 1)
                own = builder.reshape(own, (experts, 2 * pairs, rows, _TILE))
                own = builder.permute(builder.slice_dim(own, 1, 0, count), [0, 2, 1, 3])
                columns.append(builder.reshape(own, (experts, rows, count * _TILE)))
            found.append(builder.concat(columns, 2))
        return found

    def emit_down(self, builder: OpBuilder, packed: SSAValue, layer: int) -> SSAValue:
        """Emits `down` in TTIR ops."""
        _, _, experts, halves, rows, width = shape_of(packed.type)
        columns: list[SSAValue] = []
        for core, count in enumerate(self.hidden_tiles):
            own = builder.slice_dim(packed, 0, core, core + 1)
            own = builder.slice_dim(own, 1, layer, layer + 1)
            own = builder.reshape(own, (experts, halves, rows, width))
            own = builder.permute(own, [0, 2, 1, 3])
            own = builder.reshape(own, (experts, rows, halves * width))
            own = builder.slice_dim(own, 2, 0, count * _TILE)
            parts = [
                builder.slice_dim(own, 1, begin, end) for begin, end in self._parts_of_rows(core)
            ]
            columns.append(builder.concat(parts, 1))
        return builder.concat(columns, 2)


# `moe_gpt`: the MLPs of a device's experts, and lists of their tokens.
#
# The library's function is one kernel for one model, which leaves its results in the L1 of its
# cores. The decomposition reorders the weights to the order of the model, computes all experts for
# all tokens, and places the selected outputs as in the L1 of the cores. Elements that the kernel
# leaves undefined are zero. `selective_reduce_combine` returns the outputs to their tokens.

_LAYER = 0
"""The kernel reads the first layer of the weights (`layer_id` in its program factory)."""


def _tokens(op: CatalogueOp) -> tuple[int, int]:
    """Returns the number of tokens and their hidden size."""
    *outer, hidden = op.shape("input_tensor")
    return prod(outer), hidden


def _weights(op: CatalogueOp) -> ExpertWeights | str:
    return ExpertWeights.of(op.shape("w0_w1_tensor"), op.shape("w2_tensor"), _tokens(op)[1])


def _shards(op: CatalogueOp) -> ExpertShards:
    tokens, hidden = _tokens(op)
    height, width = (op.parameter(f"output_{name}_shard_dim") for name in ("height", "width"))
    return ExpertShards(tokens, op.shape("w0_w1_tensor")[2], hidden, height, width)


def _verify_moe_gpt(op: CatalogueOp) -> None:
    """Tokens (tokens, hidden), their experts and scores (tokens, k), the device of each expert
    (..., experts), and weights in the order of the cores.
    """
    expect_rank(op, 6, "w0_w1_tensor", "w2_tensor")
    gate_up, down = op.shape("w0_w1_tensor"), op.shape("w2_tensor")
    for name, shape in (("w0_w1_tensor", gate_up), ("w2_tensor", down)):
        require(op, shape[5] == 128, f"{name} of 128 columns, four tiles", shape)
        require(op, 0 not in shape, f"{name} with elements", shape)
    require(op, gate_up[:3] == down[:3], f"w2_tensor of {gate_up[:3]}, as w0_w1_tensor", down[:3])
    require(op, down[3] == 2, "w2_tensor of two halves", down)
    tokens, hidden = _tokens(op)
    require(op, len(op.shape("input_tensor")) > 1, "tokens of rank 2 or more", (hidden,))
    size = op.parameter("hidden_size")
    require(op, size == hidden, f"a hidden_size of {hidden}, as input_tensor has it", size)
    named = op.shape("expert_indices")
    require(op, prod(named[:-1]) == tokens, f"experts of {tokens} tokens", named)
    expect_operand(op, "expert_scores", named)
    weights = _weights(op)
    if isinstance(weights, str):
        require(op, False, *weights.rsplit(", found ", 1))
        return
    shards = _shards(op)
    if shards.misfit is not None:
        require(op, False, *shards.misfit.rsplit(", found ", 1))
    experts = weights.experts
    known = op.shape("expert_mapping")[-1]
    require(op, known >= experts, f"expert_mapping of {experts} experts or more", known)
    expect_shape(op, (1, aligned(experts)))
    expect_shape(op, (1, (tokens + 1) * record_stride(experts)), 1)
    expect_shape(op, (experts, (tokens + 1) * ENTRY), 2)
    cores, combining = op.results[3].type, shards.height * shards.width
    found = shape_of(cores)
    fits = len(found) == 4 and found[0] >= combining and found[1:] == (2, 32, hidden)
    require(op, fits, f"results of {combining} cores or more, (cores, 2, 32, {hidden})", found)
    expect_shape(op, found, 4)


def _experts_of(call: Call, chip: int) -> list[int]:
    """Returns the experts of a device in order, at most as many as it has weights for."""
    owners = integers(call.array("expert_mapping"))
    owners = owners.reshape(-1, owners.shape[-1])[0]
    here = [expert for expert, owner in enumerate(owners) if owner == chip]
    return here[: call.array("w0_w1_tensor").shape[2]]


def _score_bits(scores: Array) -> Array:
    import ml_dtypes

    return scores.astype(ml_dtypes.bfloat16).view(np.uint16).astype(np.int64)


def _moe_gpt_on(call: Call, chip: int) -> list[Array]:
    rows = call.array("input_tensor")
    rows = rows.reshape(-1, rows.shape[-1])
    tokens, hidden = rows.shape
    gate_up, down = call.array("w0_w1_tensor"), call.array("w2_tensor")
    weights = ExpertWeights.of(gate_up.shape, down.shape, hidden)
    assert isinstance(weights, ExpertWeights)
    mapping = call.array("expert_mapping")
    named = places(call.array("expert_indices"), mapping.shape[-1]).reshape(tokens, -1)
    bits = _score_bits(call.array("expert_scores").reshape(tokens, -1))
    experts, k = weights.experts, named.shape[1]
    here = {expert: index for index, expert in enumerate(_experts_of(call, chip))}
    lists: list[list[int]] = [[] for _ in range(experts)]
    records: list[list[int]] = []
    for token, asked in enumerate(named):
        slots, scores = [k + 1] * experts, [0] * experts
        for place, expert in reversed(list(enumerate(asked))):
            index = here.get(int(expert))
            if index is not None:
                slots[index], scores[index] = place, int(bits[token, place])
        for index, slot in enumerate(slots):
            if slot <= k:
                lists[index].append(token)
        if min(slots) <= k:
            records.append([token, *slots, *scores])
    counts = np.zeros((1, aligned(experts)), np.int64)
    counts[0, :experts] = [len(each) for each in lists]
    stride = record_stride(experts)
    activations = np.zeros((tokens + 1, stride), np.int64)
    for index, record in enumerate(records):
        activations[index, : len(record)] = record
    activations[len(records), 0] = NO_ENTRY
    indices = np.zeros((experts, tokens + 1, ENTRY), np.int64)
    for index, each in enumerate(lists):
        indices[index, : len(each), 0] = each
        indices[index, len(each), 0] = NO_ENTRY
    w0, w1 = weights.gate_and_up(gate_up, _LAYER)
    inner = GATES["swiglu"](weights.product(rows, w0), weights.product(rows, w1))
    made = weights.product(inner, weights.down(down, _LAYER))
    height, width = call["output_height_shard_dim"], call["output_width_shard_dim"]
    shards = ExpertShards(tokens, experts, hidden, height, width)
    packed = shards.packed(
        [values[each] for values, each in zip(made, lists, strict=True)],
        call.results[3].shape[0],
    )
    found = [counts, activations.reshape(1, -1), indices.reshape(experts, -1)]
    found = [
        cast("Array", each.astype(np.uint32)).view(_integer(info.dtype))
        for each, info in zip(found, call.results, strict=False)
    ]
    return [*found, packed, packed]


def _integer(dtype: str) -> str:
    return "int32" if dtype == "int32" else "uint32"


def _moe_gpt(call: Call) -> list[Array]:
    return _moe_gpt_on(call, 0)


def _moe_gpt_on_chips(calls: Sequence[Call]) -> list[list[Array]]:
    return [_moe_gpt_on(call, chip) for chip, call in enumerate(calls)]


def _decompose_moe_gpt(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
    (tokens, hidden), mesh = _tokens(op), declared_mesh(op)
    weights, shards = _weights(op), _shards(op)
    assert isinstance(weights, ExpertWeights)
    experts = weights.experts
    named = builder.operand(op, "expert_indices")
    k = shape_of(named.type)[-1]
    named = builder.reshape(named, (tokens, k))
    owners = builder.operand(op, "expert_mapping")
    known = shape_of(owners.type)[-1]
    table = owner_table(builder, owners, prod(mesh))
    here = experts_here(builder, mesh, table, experts, None)

    # One-hot (tokens, k, experts) of the local experts; of repeated ones only the first counts.
    chosen = builder.typecast(chosen_experts(builder, named, known), f32)
    hits = builder.emit("matmul", [chosen, here], TensorType(f32, [tokens, k, experts]))
    first = ones_where_equal(
        builder, builder.like("cumsum", hits, dim=1), builder.full((1, 1, 1), 1.0, f32)
    )
    hits = builder.like("multiply", hits, first)

    def at_slot(values: SSAValue) -> SSAValue:
        """Returns, for each expert, the value (tokens or 1, k, 1) at the slot that names it."""
        found = builder.broadcasting("multiply", hits, values)
        return builder.reduce("sum", found, [1], keep_dim=False)

    mask = builder.reduce("sum", hits, [1], keep_dim=False)
    one = builder.full((1, 1), 1.0, f32)
    missing = builder.broadcasting("subtract", one, mask)
    missing = builder.broadcasting("multiply", missing, builder.full((1, 1), k + 1.0, f32))
    slots = builder.like("add", at_slot(line(builder, k, 3, 1)), missing)
    scores = builder.typecast(builder.operand(op, "expert_scores"), bf16)
    bits = builder.like("bitcast_convert", builder.reshape(scores, (tokens, k)), element=ui16)
    bits = builder.reshape(builder.typecast(bits, f32), (tokens, k, 1))

    numbers = line(builder, tokens, 2, 0)
    number_bytes, slot_bytes = bytes_of(builder, numbers), bytes_of(builder, slots)
    score_bytes = [at_slot(each) for each in bytes_of(builder, bits)]
    records = [
        builder.concat(parts, 1)
        for parts in zip(number_bytes, slot_bytes, score_bytes, strict=True)
    ]
    active = builder.reduce("max", mask, [1])

    def listed(mask: SSAValue, rows: Sequence[SSAValue], result: int) -> SSAValue:
        """Returns the listed rows of tokens in order, with a terminating entry after them.

        `rows` are bytes (tokens, columns), the lists a mask (lists, 1, tokens); the result is
        (lists * (tokens + 1), columns).
        """
        count = shape_of(mask.type)[0]
        entries = line(builder, tokens + 1, 3, 1)
        place = builder.broadcasting(
            "subtract", builder.like("cumsum", mask, dim=2), builder.full((1, 1, 1), 1.0, f32)
        )
        chosen = builder.broadcasting("multiply", ones_where_equal(builder, place, entries), mask)
        columns = shape_of(rows[0].type)[1]
        found = select_rows(builder, chosen, rows)
        width = aligned(columns)
        found = builder.pad(found, [(0, 0), (0, 0), (0, width - columns)])
        found = builder.typecast(found, element_of(op.results[result].type))
        sizes = builder.reduce("sum", mask, [2])
        ends = builder.broadcasting("eq", sizes, entries, element=i1)
        first = np.zeros((1, 1, width), np.float32)
        first[..., 0] = 1
        column = builder.broadcasting(
            "gt", builder.constant(first), builder.full((1, 1, 1), 0.0, f32), element=i1
        )
        ends = builder.broadcasting("logical_and", ends, column, element=i1)
        shape = shape_of(op.results[result].type)
        assert prod(shape) == count * (tokens + 1) * width
        return builder.reshape(all_bits(builder, found, ends), shape)

    of_experts = builder.reshape(builder.permute(mask, [1, 0]), (experts, 1, tokens))
    activations = listed(builder.reshape(active, (1, 1, tokens)), records, 1)
    indices = listed(of_experts, number_bytes, 2)
    counts = builder.reduce("sum", mask, [0])
    shape = op.result_shape
    counted = builder.pad(counts, [(0, 0), (0, shape[1] - experts)])
    counted = builder.typecast(counted, op.result_type.element_type)

    made = _emit_made(builder, op, weights)
    index, valid = shards.places(builder, counts)
    rows = shape_of(index.type)[1]
    place = builder.broadcasting(
        "subtract", builder.like("cumsum", of_experts, dim=2), builder.full((1, 1, 1), 1.0, f32)
    )
    index, valid = (builder.reshape(each, (experts, rows, 1)) for each in (index, valid))
    asked = ones_where_equal(builder, index, place)
    asked = builder.broadcasting("multiply", asked, valid)
    asked = builder.broadcasting("multiply", asked, of_experts)
    element = element_of(made.type)
    picked = builder.emit(
        "matmul",
        [builder.typecast(asked, element), made],
        TensorType(element, [experts, rows, hidden]),
    )
    cores = shape_of(op.results[3].type)[0]
    packed = shards.pack(builder, picked, cores)
    blocks = [builder.typecast(packed, element_of(op.results[each].type)) for each in (3, 4)]
    return [counted, activations, indices, *blocks]


def _emit_made(builder: OpBuilder, op: CatalogueOp, weights: ExpertWeights) -> SSAValue:
    """Emits the outputs of all experts for all tokens, (experts, tokens, hidden)."""
    tokens, hidden = _tokens(op)
    rows = builder.operand(op, "input_tensor")
    element = element_of(rows.type)
    rows = builder.reshape(rows, (1, tokens, hidden))

    def product(values: SSAValue, weight: SSAValue) -> SSAValue:
        weight = builder.typecast(weight, element)
        experts, count, columns = shape_of(weight.type)
        size = count - 32 * weights.has_bias
        result = TensorType(f32, [experts, tokens, columns])
        made = builder.emit("matmul", [values, builder.slice_dim(weight, 1, 0, size)], result)
        if not weights.has_bias:
            return made
        bias = builder.typecast(builder.slice_dim(weight, 1, size, count), f32)
        return builder.broadcasting("add", made, builder.reduce("sum", bias, [1]))

    w0_w1, w2 = (builder.operand(op, name) for name in ("w0_w1_tensor", "w2_tensor"))
    w0, w1 = weights.emit_gate_and_up(builder, w0_w1, _LAYER)
    gated = emit_gate(builder, "swiglu", product(rows, w0), product(rows, w1))
    made = product(builder.typecast(gated, element), weights.emit_down(builder, w2, _LAYER))
    return builder.typecast(made, element)


def _hidden(op: CatalogueOp) -> int:
    return op.shape("input_tensor")[-1]


def _inner(op: CatalogueOp) -> int:
    return op.shape("w2_tensor")[4]


def _experts_mapped(op: CatalogueOp) -> int:
    return op.shape("expert_mapping")[-1]


def _chips_with_experts(op: Operation) -> NeededChips:
    """Returns the number of devices that all experts need."""
    if len(op.operands) < 5:
        return NeededChips()
    owners, weight = (shape_of(op.operands[index].type) for index in (3, 4))
    local = weight[2] if len(weight) > 2 else 0
    known = owners[-1] if owners else 0
    return NeededChips(total=known // local if local and known % local == 0 else 1)


register(
    TTIRDefinition(
        "ttir.moe_gpt",
        (
            operand("input_tensor", fan_in=_hidden),
            expert_operand("expert_indices", _experts_mapped),
            operand("expert_scores"),
            operand("expert_mapping"),
            operand("w0_w1_tensor", input_kind="weight", fan_in=_hidden),
            operand("w2_tensor", input_kind="weight", fan_in=_inner),
        ),
        (
            attribute("output_height_shard_dim", INTEGER, 4),
            attribute("output_width_shard_dim", INTEGER, 3),
            attribute("hidden_size", INTEGER, 2880),
            attribute("cluster_axis", INTEGER, None),
            MESH_SHAPE,
        ),
        results=5,
        verify=_verify_moe_gpt,
        numpy=_moe_gpt,
        chips=_moe_gpt_on_chips,
        decompose=_decompose_moe_gpt,
        needed_chips=_chips_with_experts,
        # Matmuls of tiles propagate NaN scores of a token to other tokens.
        traits=Trait.OWN_NAN,
    )
)
