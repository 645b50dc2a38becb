"""Mixture of experts: `selective_reduce_combine`, and the L1 shards it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, shape_of
from ttcodegen.dialects.operations.attribute_kinds import INTEGER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import declared_mesh, groups_along
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.collectives.reference import MESH_SHAPE, mesh_of
from ttcodegen.ops.collectives.schedule import TensorParts
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import Call, TTIRDefinition, attribute, operand, register
from ttcodegen.ops.core.dimensions import expect_rank, expect_shape, require
from ttcodegen.ops.core.traits import NeededChips, integer_of, on_axis

# L1 shards of expert outputs, written by `moe_gpt` and read by `selective_reduce_combine`.
#
# The tensor is (cores, 2, 32, hidden), one shard per core. The first `height * width` cores
# combine. The tokens of each expert are split evenly among `height` rows of cores, like
# `token_work_split_even` of tt-metal, and the output of a token among the `width` cores of a row.
# On a core, each expert has `tokens // height` consecutive rows of `hidden // width` elements
# (`shard_offset_per_expert_bytes` of the kernel `moe_gpt/device/kernels/dm1.cpp`). Unused rows are
# undefined on the device, and zero here.

_ROWS_OF_SHARD = 64
"""Rows of the shard of a core: two tiles."""

ENTRY = 4
"""Stride of list entries in L1 in elements: addresses are multiples of 16 bytes."""

NO_ENTRY = 0xFFFFFFFF
"""Terminator of a list."""


def aligned(count: int) -> int:
    """Rounds a number of 4-byte elements up to the L1 alignment."""
    return -(-count // ENTRY) * ENTRY


def record_stride(experts: int) -> int:
    """Returns the stride of token records: the token, and each expert's slot and score."""
    return aligned(2 * experts + 1)


@dataclass(frozen=True)
class ExpertShards:
    """Placement of expert outputs in the L1 memories of cores."""

    tokens: int
    experts: int
    hidden: int
    height: int
    width: int

    @property
    def rows(self) -> int:
        """Rows of each expert on a core."""
        return self.tokens // self.height

    @property
    def used(self) -> int:
        """Elements of a core that all experts take."""
        return self.experts * self.rows * (self.hidden // self.width)

    @property
    def misfit(self) -> str | None:
        """Returns why expert outputs cannot be placed so, None if they can."""
        if self.height < 1 or self.tokens % self.height:
            return f"tokens that divide among {self.height} rows of cores, found {self.tokens}"
        if self.width < 1 or self.hidden % (32 * self.width):
            return f"tiles that divide among {self.width} cores, found {self.hidden} elements"
        if self.used > _ROWS_OF_SHARD * self.hidden:
            return (
                f"results of no more than {_ROWS_OF_SHARD} rows per core, found {self.tokens} "
                f"tokens of {self.experts} experts on {self.height * self.width} cores"
            )
        return None

    def rows_of_tokens(self, count: int) -> list[tuple[int, int]]:
        """Returns the row of cores and the row there of each of `count` tokens."""
        places: list[tuple[int, int]] = []
        for core in range(self.height):
            size = count // self.height + (core < count % self.height)
            places += [(core, row) for row in range(size)]
        return places

    # numpy

    def packed(self, made: list[Array], cores: int) -> Array:
        """Packs each expert's outputs (tokens, hidden) to (cores, 2, 32, hidden)."""
        shards = np.zeros(
            (cores, self.experts, self.rows, self.hidden // self.width), made[0].dtype
        )
        for expert, values in enumerate(made):
            for value, (core, row) in zip(values, self.rows_of_tokens(len(values)), strict=True):
                first = core * self.width
                shards[first : first + self.width, expert, row] = value.reshape(self.width, -1)
        whole = np.zeros((cores, _ROWS_OF_SHARD * self.hidden), made[0].dtype)
        whole[:, : self.used] = shards.reshape(cores, -1)
        return whole.reshape(cores, 2, _ROWS_OF_SHARD // 2, self.hidden)

    def unpacked(self, shards: Array, counts: list[int]) -> list[Array]:
        """Inverts `packed` for the given token counts of the experts."""
        whole = shards.reshape(len(shards), -1)[: self.height * self.width, : self.used]
        whole = whole.reshape(self.height, self.width, self.experts, self.rows, -1)
        found: list[Array] = []
        for expert, count in enumerate(counts):
            values = np.zeros((count, self.hidden), shards.dtype)
            for index, (core, row) in enumerate(self.rows_of_tokens(count)):
                values[index] = whole[core, :, expert, row].reshape(-1)
            found.append(values)
        return found

    # TTIR ops

    def places(self, builder: OpBuilder, counts: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Emits the token index of each row of a core row, and a mask of used rows.

        Both are (experts, height * rows), f32, from counts (experts,).
        """
        counts = builder.reshape(counts, (self.experts, 1, 1))
        core, row = np.indices((1, self.height, self.rows), dtype=np.float32)[1:]
        limits = builder.constant(core + row * np.float32(self.height))
        larger = builder.typecast(builder.broadcasting("gt", counts, limits, element=i1), f32)
        sizes = builder.reduce("sum", larger, [2])
        starts = builder.like("subtract", builder.like("cumsum", sizes, dim=1), sizes)
        rows = builder.constant(row[:, :1])
        index = builder.broadcasting("add", starts, rows)
        valid = builder.typecast(builder.broadcasting("gt", sizes, rows, element=i1), f32)
        shape = (self.experts, self.height * self.rows)
        return builder.reshape(index, shape), builder.reshape(valid, shape)

    def pack(self, builder: OpBuilder, values: SSAValue, cores: int) -> SSAValue:
        """Emits `packed` of (experts, height * rows, hidden)."""
        part = self.hidden // self.width
        values = builder.reshape(values, (self.experts, self.height, self.rows * self.width, part))
        values = builder.reshape(
            builder.permute(values, [1, 0, 2, 3]),
            (self.height, self.experts * self.rows, self.width, part),
        )
        values = builder.permute(values, [0, 2, 1, 3])
        values = builder.reshape(values, (self.height * self.width, self.used))
        rest = _ROWS_OF_SHARD * self.hidden - self.used
        values = builder.pad(values, [(0, cores - self.height * self.width), (0, rest)])
        return builder.reshape(values, (cores, 2, _ROWS_OF_SHARD // 2, self.hidden))

    def unpack(self, builder: OpBuilder, shards: SSAValue) -> SSAValue:
        """Emits the inverse of `pack`, (experts, height * rows, hidden)."""
        part = self.hidden // self.width
        shards = builder.reshape(shards, (shape_of(shards.type)[0], _ROWS_OF_SHARD * self.hidden))
        values = builder.slice(shards, (0, 0), (self.height * self.width, self.used))
        values = builder.reshape(values, (self.height, self.width, self.experts * self.rows, part))
        values = builder.permute(values, [0, 2, 1, 3])
        values = builder.reshape(values, (self.height, self.experts, self.rows * self.width, part))
        values = builder.permute(values, [1, 0, 2, 3])
        return builder.reshape(values, (self.experts, self.height * self.rows, self.hidden))


def line(builder: OpBuilder, count: int, rank: int, dim: int) -> SSAValue:
    """Returns 0, 1, 2, ... along a dimension, f32."""
    shape = [1] * rank
    shape[dim] = count
    return builder.constant(np.arange(count, dtype=np.float32).reshape(shape))


def ones_where_equal(builder: OpBuilder, first: SSAValue, second: SSAValue) -> SSAValue:
    """Returns 1 where the values are equal, else 0, in f32."""
    return builder.typecast(builder.broadcasting("eq", first, second, element=i1), f32)


def bytes_of(builder: OpBuilder, value: SSAValue) -> list[SSAValue]:
    """Returns the high and low byte of integers below 65536 in f32."""
    ones = [1] * len(shape_of(value.type))
    scaled = builder.broadcasting("multiply", value, builder.full(ones, 1 / 256, f32))
    high = builder.like("floor", scaled)
    whole = builder.broadcasting("multiply", high, builder.full(ones, 256.0, f32))
    return [high, builder.like("subtract", value, whole)]


def select_rows(builder: OpBuilder, chosen: SSAValue, rows: Sequence[SSAValue]) -> SSAValue:
    """Selects integer rows by a one-hot matmul with `chosen` (..., rows, tokens).

    `rows` are the high and low bytes, (tokens, columns) each: matmuls of f32 have too few bits for
    the integers themselves.
    """
    *batch, count, tokens = shape_of(chosen.type)
    columns = shape_of(rows[0].type)[1]
    result = TensorType(f32, [*batch, count, columns])
    high, low = (
        builder.emit(
            "matmul",
            [chosen, builder.reshape(each, (*(1 for _ in batch), tokens, columns))],
            result,
        )
        for each in rows
    )
    scale = builder.full([1] * (len(batch) + 2), 256.0, f32)
    return builder.like("add", builder.broadcasting("multiply", high, scale), low)


def all_bits(builder: OpBuilder, value: SSAValue, where: SSAValue) -> SSAValue:
    """Sets all bits of an integer tensor where `where` is true."""
    ones = builder.full([1] * len(shape_of(value.type)), 0, element_of(value.type))
    return builder.broadcasting(
        "where", where, builder.like("bitwise_not", ones), value, element=element_of(value.type)
    )


def expect_operand(op: CatalogueOp, name: str, expected: Sequence[int]) -> None:
    """Raises VerifyException unless the operand has the expected shape."""
    require(op, op.shape(name) == tuple(expected), f"{name} of {tuple(expected)}", op.shape(name))


def integers(value: Array) -> Array:
    """Converts an array to int64."""
    return cast("Array", np.asarray(value).astype(np.int64))


# `selective_reduce_combine` returns the expert outputs of `moe_gpt` to the devices of their tokens.

_HEIGHT, _WIDTH = 4, 3
"""Rows and columns of combining cores.

The op does not specify them; these are the values of tt-mlir's runtime
(`selective_reduce_combine.cpp`) and the defaults of `moe_gpt`.
"""
_AXIS = 0
"""Mesh axis along which tokens return, likewise."""


def _shards(op: CatalogueOp) -> ExpertShards:
    tokens = op.parameter("batch_size") * op.parameter("seq_size")
    experts = op.shape("dense_token_maps_tensor")[0]
    return ExpertShards(tokens, experts, op.parameter("hidden_size"), _HEIGHT, _WIDTH)


def _verify_combine(op: CatalogueOp) -> None:
    """The results of `moe_gpt`: expert outputs (cores, 2, 32, hidden), records of tokens, tokens of
    experts, and their counts; the result is (k, tokens of a device, hidden).
    """
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
    """Returns one device's expert outputs (k, tokens, hidden), zeros for other experts."""
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
        """Returns columns of list entries, (lists, tokens, columns), f32."""
        value = builder.operand(op, name)
        size = prod(shape_of(value.type)) // (lists * (tokens + 1))
        value = builder.reshape(value, (lists, tokens + 1, size))
        value = builder.slice(value, (0, 0, first), (lists, tokens, first + count))
        return builder.typecast(value, f32)

    def is_token(value: SSAValue) -> SSAValue:
        """Returns the one-hot tokens of entries, (lists, entries, tokens)."""
        return ones_where_equal(builder, value, line(builder, tokens, 3, 2))

    # Maps rows of cores to list entries, and these to tokens.
    named = is_token(column("dense_token_maps_tensor", experts, 0, 1))
    count = shape_of(index.type)[1]
    index, valid = (builder.reshape(each, (experts, count, 1)) for each in (index, valid))
    entry = ones_where_equal(builder, index, line(builder, tokens, 3, 2))
    entry = builder.broadcasting("multiply", entry, valid)
    target = builder.emit("matmul", [entry, named], TensorType(f32, [experts, count, tokens]))
    target = builder.typecast(builder.permute(target, [0, 2, 1]), element)
    made = builder.emit("matmul", [target, rows], TensorType(element, [experts, tokens, hidden]))

    # The slot of each expert in its token's top k, from the token's record.
    ids = column("dense_activations_tensor", 1, 0, 1)
    slots = column("dense_activations_tensor", 1, 1, experts)
    slots = builder.reshape(slots, (tokens, experts, 1))
    slots = ones_where_equal(builder, slots, line(builder, k, 3, 2))
    slots = builder.reshape(slots, (tokens, experts * k))
    owned = builder.reshape(is_token(ids), (tokens, tokens))
    owned = builder.broadcasting("multiply", owned, _before_end(builder, ids, tokens))
    slot_of = builder.emit(
        "matmul",
        [builder.permute(owned, [1, 0]), slots],
        TensorType(f32, [tokens, experts * k]),
    )
    slot_of = builder.permute(builder.reshape(slot_of, (tokens, experts, k)), [0, 2, 1])
    found = builder.emit(
        "matmul",
        [builder.typecast(slot_of, element), builder.permute(made, [1, 0, 2])],
        TensorType(element, [tokens, k, hidden]),
    )
    found = builder.permute(found, [1, 0, 2])
    mesh = declared_mesh(op)
    if mesh[_AXIS] > 1:
        found = TensorParts(builder, mesh).reduce_scatter(found, "sum", 1, _AXIS)
    return builder.typecast(found, op.result_type.element_type)


def _before_end(builder: OpBuilder, ids: SSAValue, tokens: int) -> SSAValue:
    """Returns 1 for each entry before the terminator, else 0, (entries, 1).

    The terminator is the first entry that names no token; `ids` are token numbers in f32.
    """
    ids = builder.reshape(ids, (tokens, 1))

    def are(name: str, limit: float) -> SSAValue:
        return builder.broadcasting(name, ids, builder.full((1, 1), limit, f32), element=i1)

    ends = builder.like("logical_or", are("lt", 0.0), are("gt", tokens - 0.5))
    passed = builder.like("cumsum", builder.typecast(ends, f32), dim=0)
    return ones_where_equal(builder, passed, builder.full((1, 1), 0.0, f32))


def _chips_of_combine(op: Operation) -> NeededChips:
    """Returns the devices that all experts need, and along the axis those that split the tokens."""
    maps = shape_of(op.operands[2].type) if len(op.operands) > 2 else ()
    result = shape_of(op.results[0].type) if op.results else ()
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
