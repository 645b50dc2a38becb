"""Primitives of decode and chunked attention in device programs, and its core assignment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, shape_of, si32
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.program_configs import SDPA, CoreGrid
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.attention.reference import default_scale
from ttcodegen.ops.attention.sdpa import sum_of
from ttcodegen.ops.core.builder import OpBuilder

# Device programs compute attention over caches as attention of sequences, with a mask for future
# positions, over keys and values gathered from their pages row by row.

_MOST_ROWS = 1 << 24
"""Largest number of cache rows whose indices are exact in float32."""


def decode_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Decode attention over contiguous caches."""
    return _decoded(builder, op, builder.operand(op, "key"), builder.operand(op, "value"))


def paged_decode_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Decode attention over paged caches; None above `_MOST_ROWS` rows."""
    pages = _unpaged(builder, op)
    return None if pages is None else _decoded(builder, op, *pages)


def latent_decode_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Decode attention over paged latent vectors; None above `_MOST_ROWS` rows."""
    rows = _page_row_indices(builder, op)
    if rows is None:
        return None
    key, value = latent_vectors(builder, op, lambda pages: _gather_rows(builder, pages, rows))
    return _decoded(builder, op, key, value)


def latent_vectors(
    builder: OpBuilder, op: CatalogueOp, unpaged: Callable[[SSAValue], SSAValue]
) -> tuple[SSAValue, SSAValue]:
    """Returns keys and values of latent attention, gathered from pages by `unpaged`.

    Without a value operand the values are the first elements of the keys.
    """
    key, value = unpaged(builder.operand(op, "key")), builder.optional(op, "value")
    if value is None:
        return key, builder.slice_dim(key, 3, 0, op.parameter("head_dim_v"))
    return key, unpaged(value)


def chunked_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Causal attention of a chunk of a prompt; None above `_MOST_ROWS` rows."""
    pages = _unpaged(builder, op)
    if pages is None:
        return None
    queries, keys = op.shape("query")[2], shape_of(pages[0].type)[2]
    start = builder.reshape(builder.operand(op, "chunk_start_idx"), [1, 1, 1, 1])
    start = builder.typecast(start, f32)
    line = np.arange(queries, dtype=np.float32).reshape(1, 1, queries, 1)
    rows = builder.broadcasting("add", builder.constant(line), start)
    mask = _hiding(builder, builder.broadcasting("le", _positions(builder, keys), rows))
    return _attended(builder, op, builder.operand(op, "query"), *pages, mask, None)


def _decoded(builder: OpBuilder, op: CatalogueOp, key: SSAValue, value: SSAValue) -> SSAValue:
    query = builder.permute(builder.operand(op, "query"), [1, 2, 0, 3])
    factor = builder.full([1] * 4, _scale(op), f32)
    mask, sink = builder.optional(op, "attention_mask"), builder.optional(op, "attention_sink")
    if mask is not None:
        mask = builder.typecast(builder.permute(mask, [0, 2, 1, 3]), f32)
        mask = builder.broadcasting("multiply", mask, factor)
    mask = sum_of(builder, mask, _past(builder, op, shape_of(key.type)[2]))
    if sink is not None:
        sink = builder.slice_dim(sink, 1, 0, 1)
        sink = builder.typecast(builder.reshape(sink, [1, shape_of(sink.type)[0], 1, 1]), f32)
        sink = builder.broadcasting("multiply", sink, factor)
    result = _attended(builder, op, query, key, value, mask, sink)
    return builder.permute(result, [2, 0, 1, 3])


def _attended(
    builder: OpBuilder,
    op: CatalogueOp,
    query: SSAValue,
    key: SSAValue,
    value: SSAValue,
    mask: SSAValue | None,
    sink: SSAValue | None,
) -> SSAValue:
    element = op.result_type.element_type
    shape = [*shape_of(query.type)[:3], shape_of(value.type)[3]]
    return builder.emit(
        "scaled_dot_product_attention",
        [
            query,
            key,
            value,
            None if mask is None else builder.typecast(mask, element),
            None if sink is None else builder.typecast(sink, element),
        ],
        TensorType(element, shape),
        is_causal=False,
        scale=_scale(op),
    )


def _scale(op: CatalogueOp) -> float:
    scale = op.parameter("scale")
    return float(default_scale(op.shape("query")[3]) if scale is None else scale)


def _positions(builder: OpBuilder, keys: int) -> SSAValue:
    return builder.constant(np.arange(keys, dtype=np.float32).reshape(1, 1, 1, keys))


def _hiding(builder: OpBuilder, visible: SSAValue) -> SSAValue:
    """Returns the additive mask: zero where visible, minus infinity elsewhere."""
    zero, hidden = (builder.full([1] * 4, number, f32) for number in (0.0, -np.inf))
    return builder.broadcasting("where", visible, zero, hidden, element=f32)


def _past(builder: OpBuilder, op: CatalogueOp, keys: int) -> SSAValue | None:
    """Returns the mask of keys outside each user's window, None if all are visible.

    Hidden are the keys past the user's position and those before its window.
    """
    names = {spec.name for spec in op.definition.attributes}
    window = op.parameter("sliding_window_size") if "sliding_window_size" in names else None
    current = builder.optional(op, "cur_pos_tensor")
    if current is None or not op.parameter("is_causal"):
        if not window or window >= keys:
            return None
        last = builder.full([1] * 4, float(keys - 1), f32)
    else:
        last = builder.reshape(current, [shape_of(current.type)[0], 1, 1, 1])
        last = builder.typecast(last, f32)
    line = _positions(builder, keys)
    visible = builder.broadcasting("le", line, last)
    if window and window < keys:
        first = builder.full([1] * 4, float(window), f32)
        first = builder.broadcasting("subtract", last, first)
        inside = builder.broadcasting("gt", line, first)
        visible = builder.broadcasting("multiply", visible, inside)
    return _hiding(builder, visible)


def _unpaged(builder: OpBuilder, op: CatalogueOp) -> tuple[SSAValue, SSAValue] | None:
    """Gathers keys and values (users, heads, positions, head size) from their pages."""
    rows = _page_row_indices(builder, op)
    if rows is None:
        return None
    key, value = (
        _gather_rows(builder, builder.operand(op, name), rows) for name in ("key", "value")
    )
    return key, value


def _page_row_indices(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Returns the cache row of each position, (users, heads, pages, page size).

    None above `_MOST_ROWS` rows.
    """
    total, heads, page, _ = op.shape("key")
    if total * heads * page > _MOST_ROWS:
        return None
    table = builder.operand(op, "page_table")
    users, count = shape_of(table.type)
    number = builder.typecast(builder.reshape(table, [users, 1, count, 1]), f32)
    for name, bound in (("maximum", 0.0), ("minimum", float(total - 1))):
        number = builder.broadcasting(name, number, builder.full([1] * 4, bound, f32))
    rows_of_page = builder.full([1] * 4, float(heads * page), f32)
    first = builder.broadcasting("multiply", number, rows_of_page)
    inside: Array = np.arange(heads * page, dtype=np.float32).reshape(1, heads, 1, page)
    rows = builder.broadcasting("add", first, builder.constant(inside))
    return builder.typecast(rows, si32)


def _gather_rows(builder: OpBuilder, pages: SSAValue, rows: SSAValue) -> SSAValue:
    total, heads, page, size = shape_of(pages.type)
    users, _, count, _ = shape_of(rows.type)
    table = builder.reshape(pages, [total * heads * page, size])
    result = TensorType(element_of(pages.type), [users, heads, count, page, size])
    found = builder.emit("embedding", [rows, table], result)
    return builder.reshape(found, [users, heads, count * page, size])


# Core assignment of decode attention within the limits of the library.
#
# Source: sdpa_decode_program_factory.cpp, and kernel.cpp for kernel arguments, of tt-metal.

CONFIGURED_CORES = 16
"""Cores per KV head if a program config does not specify them."""
LARGEST_CHUNK = 512
"""Default number of keys per chunk."""
MOST_ROUNDS = 6
"""Upper bound on the rounds of the tree reduction over the cores of a KV head."""
MOST_ARGUMENTS = 341
"""Largest number of runtime argument words of a kernel on each core."""
_WRITER = 16 + MOST_ROUNDS
"""Arguments of the writer kernel, besides core coordinates."""


def default_chunk(keys: int) -> int:
    """Returns the default chunk: the largest power of two that divides the keys, at most 512."""
    return min(LARGEST_CHUNK, keys & -keys)


@dataclass(frozen=True)
class DecodeCores:
    """Assignment of users and their KV heads to cores, at most `most` cores per head."""

    users: int
    key_heads: int
    cores: int
    most: int

    @property
    def _of_user(self) -> int:
        return max(1, min(self.cores, self.most * self.users * self.key_heads) // self.users)

    @property
    def heads_per_core(self) -> int:
        each = max(1, -(-self.key_heads // self._of_user))
        while self.key_heads % each:
            each += 1
        return each

    @property
    def per_head(self) -> int:
        """Number of cores per KV head."""
        return max(1, self._of_user // self.key_heads)

    @property
    def misfit(self) -> str | None:
        """Returns why the library rejects this assignment of cores, None if it accepts it."""
        if self.cores < self.users:
            return f"{self.users} users need a core each, there are {self.cores}"
        if self.per_head > 1 << MOST_ROUNDS:
            return f"a head has {1 << MOST_ROUNDS} cores at most, here {self.per_head}"
        reducing = self.users * self.key_heads // self.heads_per_core
        arguments = _WRITER + 2 * (self.per_head + reducing + self.users)
        if arguments > MOST_ARGUMENTS:
            return f"a kernel is given {MOST_ARGUMENTS} words at most, here {arguments}"
        return None


def fitting_grid(users: int, key_heads: int, grid: CoreGrid) -> CoreGrid | None:
    """Returns the largest grid of full rows that the library accepts, None if there is none."""
    for rows in range(grid.rows, 0, -1):
        found = CoreGrid(grid.columns, rows)
        if DecodeCores(users, key_heads, found.cores, CONFIGURED_CORES).misfit is None:
            return found
    return None


def needed_program(users: int, key_heads: int, chunk: int, grid: CoreGrid) -> SDPA | None:
    """Returns the program config for a call that the library rejects on the full grid.

    It has fewer cores and takes `chunk` keys at a time. None if the default is accepted, or no grid
    is.
    """
    if DecodeCores(users, key_heads, grid.cores, grid.cores).misfit is None:
        return None
    found = fitting_grid(users, key_heads, grid)
    return None if found is None else SDPA(found, 0, chunk)
