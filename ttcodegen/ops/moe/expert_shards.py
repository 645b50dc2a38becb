"""Mixture of experts: the L1 shards that `moe_gpt` leaves results of experts in, and
`selective_reduce_combine` reads them from.

The tensor is (cores, 2, 32, hidden): the L1 of a core for each index. The first
`height * width` of them are those that combine. The tokens of each expert are split evenly among
`height` rows of cores, as `token_work_split_even` of tt-metal 0.70.1 does, and what the expert made
of a token among the `width` cores of a row. In a core, each expert has `tokens // height` rows of
`hidden // width` elements, one after the other (`shard_offset_per_expert_bytes` of the kernel
`moe_gpt/device/kernels/dm1.cpp`). What no token fills is undefined on the device, and zero here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.shape_checks import require

_ROWS_OF_SHARD = 64
"""Two tiles, as high as the shard of a core is."""

ENTRY = 4
"""Elements between two entries of lists in L1, whose addresses are multiples of 16 bytes."""

NO_ENTRY = 0xFFFFFFFF
"""After the last entry of a list."""


def aligned(count: int) -> int:
    """Elements of 4 bytes that so many of them take in L1."""
    return -(-count // ENTRY) * ENTRY


def record_stride(experts: int) -> int:
    """Elements between the records of two tokens: its number, and for each expert its place among
    those of the token, and its score."""
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
        """Rows of a core for each expert."""
        return self.tokens // self.height

    @property
    def used(self) -> int:
        """Elements of a core that all experts take."""
        return self.experts * self.rows * (self.hidden // self.width)

    @property
    def misfit(self) -> str | None:
        """Returns why expert outputs cannot be placed so, or None if they can."""
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
        """For each of so many tokens of an expert, its row of cores, and the row there."""
        places: list[tuple[int, int]] = []
        for core in range(self.height):
            size = count // self.height + (core < count % self.height)
            places += [(core, row) for row in range(size)]
        return places

    # numpy

    def packed(self, made: list[Array], cores: int) -> Array:
        """(cores, 2, 32, hidden), of what each expert made of its tokens (tokens, hidden)."""
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

    # ops of TTIR

    def places(self, builder: OpBuilder, counts: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Builds the token index of each row of a core row, and a mask of used rows.

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
        """As `packed`, of (experts, height * rows, hidden)."""
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
        """(experts, height * rows, hidden), of what `pack` gives."""
        part = self.hidden // self.width
        shards = builder.reshape(shards, (shape_of(shards.type)[0], _ROWS_OF_SHARD * self.hidden))
        values = builder.slice(shards, (0, 0), (self.height * self.width, self.used))
        values = builder.reshape(values, (self.height, self.width, self.experts * self.rows, part))
        values = builder.permute(values, [0, 2, 1, 3])
        values = builder.reshape(values, (self.height, self.experts, self.rows * self.width, part))
        values = builder.permute(values, [1, 0, 2, 3])
        return builder.reshape(values, (self.experts, self.height * self.rows, self.hidden))


def line(builder: OpBuilder, count: int, rank: int, dim: int) -> SSAValue:
    """0, 1, 2, ... along a dimension, f32."""
    shape = [1] * rank
    shape[dim] = count
    return builder.constant(np.arange(count, dtype=np.float32).reshape(shape))


def ones_where_equal(builder: OpBuilder, first: SSAValue, second: SSAValue) -> SSAValue:
    """f32, of values that broadcast."""
    return builder.typecast(builder.broadcasting("eq", first, second, element=i1), f32)


def bytes_of(builder: OpBuilder, value: SSAValue) -> list[SSAValue]:
    """The high and the low byte of integers of less than 65536 in f32."""
    ones = [1] * len(shape_of(value.type))
    scaled = builder.broadcasting("multiply", value, builder.full(ones, 1 / 256, f32))
    high = builder.like("floor", scaled)
    whole = builder.broadcasting("multiply", high, builder.full(ones, 256.0, f32))
    return [high, builder.like("subtract", value, whole)]


def select_rows(builder: OpBuilder, chosen: SSAValue, rows: Sequence[SSAValue]) -> SSAValue:
    """The rows for which `chosen` (..., rows, tokens) has a one, of integers whose bytes are
    `rows`, (tokens, columns) each: in products the device rounds f32 to fewer digits than integers
    have."""
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
    """`value`, of an integer type, with all bits set where `where` is true."""
    ones = builder.full([1] * len(shape_of(value.type)), 0, element_of(value.type))
    return builder.broadcasting(
        "where", where, builder.like("bitwise_not", ones), value, element=element_of(value.type)
    )


def expect_operand(op: CatalogueOp, name: str, expected: Sequence[int]) -> None:
    """An operand of that shape."""
    require(op, op.shape(name) == tuple(expected), f"{name} of {tuple(expected)}", op.shape(name))


def integers(value: Array) -> Array:
    """Whatever numbers of an operand, as integers to compute places with."""
    return cast("Array", np.asarray(value).astype(np.int64))
