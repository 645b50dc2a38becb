"""Paged KV caches, written in place."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType, i32
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, element_of, shape_of
from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.shards import Shards
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, whole_tiles
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    COMPUTE_CONFIG_ATTRIBUTE,
    NULLOPT,
    CppCalls,
    Text,
    compute_config,
)
from ttcodegen.ops.core.definition import (
    Call,
    Layout,
    OperandSpec,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    optional,
    register,
)
from ttcodegen.ops.core.dimensions import expect_floats, expect_integers, require
from ttcodegen.ops.core.engine import in_source
from ttcodegen.ops.core.lowering import cpu_call, same_attributes
from ttcodegen.ops.core.traits import CallKind, no_flops
from ttcodegen.systems.cards import NARROWEST

PAGED_HEADER = "ttnn/operations/experimental/paged_cache/paged_cache.hpp"
MOST_USERS = NARROWEST.cores
"""Users per call: each user's rows are on a separate core, and every device has this many."""
PAGED_TYPES = (DataType.BFLOAT16, DataType.FLOAT32, DataType.BFLOAT8_B, DataType.BFLOAT4_B)
WRITTEN = (DataType.BFLOAT16, DataType.FLOAT32)
SKIPPED = -1
"""Position of a user, or page number, for which nothing is written."""


def _verify_pages(op: CatalogueOp) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Cache (pages, heads, page size, head size) and input have equal head sizes."""
    cache, entry = op.shape("cache"), op.shape("input")
    fits = len(cache) == 4 and len(entry) == 4 and cache[3] == entry[3]
    require(op, fits, "a cache and an input of rank 4 and one head size", f"{cache} and {entry}")
    expect_floats(op, "cache", "input")
    return cache, entry


def _verify_page_size(op: CatalogueOp, size: int) -> None:
    require(op, size % TILE_SIDE == 0, f"pages of a multiple of {TILE_SIDE} positions", size)


def of_one_type(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue] | None:
    """Casts the input of a cache op to the data type of the cache; None if it has that."""
    element = element_of(op.operand("cache").type)
    if element_of(op.operand("input").type) == element:
        return None
    operands = {name: list(group) for name, group in op.operand_groups().items()}
    operands["input"] = [builder.typecast(builder.operand(op, "input"), element)]
    builder.emit_op(op.definition.short_name, list(operands.values()), [], **op.parameters())
    return []


# paged_update_cache


def _verify_paged_update(op: CatalogueOp) -> None:
    """The input (1, users, heads, head size) has the cache's heads, possibly padded."""
    cache, entry = _verify_pages(op)
    require(op, entry[0] == 1, "an input whose first dimension is 1", entry)
    require(op, entry[2] >= cache[1], f"at least the {cache[1]} heads of the cache", entry)
    index = op.shape("update_index")
    require(op, index == (entry[1],), f"an update_index of shape {(entry[1],)}", index)
    expect_integers(op, "update_index", "page_table")
    table = op.optional_operand("page_table")
    if table is not None:
        _verify_page_size(op, cache[2])
        found = shape_of(table.type)
        fits = len(found) == 2 and found[0] == entry[1]
        require(op, fits, f"a page_table with {entry[1]} rows", found)
        if op.parameter("share_cache"):
            raise VerifyException(f"{op.name}: a cache in pages cannot be shared")
        return
    users = 1 if op.parameter("share_cache") else entry[1]
    require(op, cache[0] == users, f"a cache of {users} users", cache)


def _paged_update(call: Call) -> Sequence[Array]:
    cache, entry = call.array("cache"), call.array("input")
    table = call.optional("page_table")
    heads, page_size = cache.shape[1:3]
    for user, position in enumerate(call.array("update_index").astype(np.int64)):
        if position == SKIPPED:
            continue
        page = 0 if call["share_cache"] else user
        if table is not None:
            page = int(table[user, position // page_size])
            position %= page_size
        write_row(call, page, int(position), entry[0, user, :heads])
    return []


def write_row(call: Call, owner: int, position: int, rows: Array) -> None:
    """Writes one row for each head to a position of a cache.

    On the device the tiles of the position pass through the source registers with all of their
    rows.
    """
    cache = call.array("cache")
    cache[owner, :, position] = in_source(rows, call.arithmetic)
    first = position // TILE_SIDE * TILE_SIDE
    tiles = cache[owner, :, first : first + TILE_SIDE]
    tiles[...] = in_source(tiles, call.arithmetic)


def _lower_paged_update(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
    cache, entry = builder.operand(op, "cache"), builder.operand(op, "input")
    positions, table = builder.operand(op, "update_index"), builder.optional(op, "page_table")
    if op.parameter("share_cache"):
        _expect_few(op, shape_of(entry.type)[1], shape_of(cache.type)[1])
        write_rows(builder, op, cache, entry, positions, share_cache=True)
    else:
        write_rows(builder, op, cache, entry, positions, table)
    return []


def _expect_few(op: CatalogueOp, users: int, heads: int) -> None:
    if users > MOST_USERS or heads > TILE_SIDE:
        raise VerifyException(
            f"{op.name}: the library updates caches of up to {MOST_USERS} users at once and "
            f"{TILE_SIDE} heads, found {users} and {heads}"
        )


def write_rows(
    builder: OpBuilder,
    op: CatalogueOp,
    cache: SSAValue,
    entry: SSAValue,
    positions: SSAValue,
    table: SSAValue | None = None,
    first: int = 0,
    share_cache: bool = False,
) -> None:
    """Writes rows (1, users, heads, head size) to each user's position of a cache.

    Pages come from the table; without one, user i has page `first` + i. The library reads one tile
    of heads per user, from a separate core, for at most `MOST_USERS` users; if they are not all
    users of the cache, it is written as a paged cache. Raises VerifyException if its pages are not
    whole tiles then.
    """
    owners, own_heads, length, _ = shape_of(cache.type)
    _, users, heads, _ = shape_of(entry.type)
    if table is None and (users > MOST_USERS or users != owners) and not share_cache:
        _expect_few(op, 0 if length % TILE_SIDE == 0 else users, own_heads)
        _verify_page_size(op, length)
        table = _page_per_user(builder, first, users)
    _expect_few(op, 0, own_heads)
    if heads > TILE_SIDE:
        entry = builder.slice_dim(entry, 2, 0, TILE_SIDE)
    entry = builder.typecast(entry, element_of(cache.type))
    for begin in range(0, users, MOST_USERS):
        end = min(begin + MOST_USERS, users)
        pages = None if table is None else builder.slice_dim(table, 0, begin, end)
        part = builder.slice_dim(entry, 1, begin, end)
        indices = builder.slice_dim(positions, 0, begin, end)
        builder.emit_op(
            "paged_update_cache", [cache, part, indices, pages], [], share_cache=share_cache
        )


def _page_per_user(builder: OpBuilder, first: int, users: int) -> SSAValue:
    """Returns a page table with one page per user, which holds all of its positions."""
    type_ = TensorType(i32, [users, 1])
    numbers = DenseIntOrFPElementsAttr.from_list(type_, list(range(first, first + users)))
    return builder.emit("constant", [], type_, value=numbers)


def _positions(op: CatalogueOp) -> int:
    """Returns the number of cache positions of each user."""
    table = op.optional_operand("page_table")
    return op.shape("cache")[2] * (1 if table is None else shape_of(table.type)[1])


def _pages(op: CatalogueOp) -> int:
    return op.shape("cache")[0]


def _users(op: CatalogueOp) -> int:
    return op.shape("page_table")[0]


_SHARED = attribute("share_cache", BOOLEAN, False)

register(
    TTIRDefinition(
        "ttir.paged_update_cache",
        (
            operand("cache"),
            operand("input"),
            operand("update_index", input_kind="index", places=_positions),
            optional("page_table", input_kind="index", places=_pages),
        ),
        (_SHARED,),
        results=0,
        verify=_verify_paged_update,
        numpy=_paged_update,
        in_place="cache",
        primitives=of_one_type,
        lower=_lower_paged_update,
        cpu=cpu_call("cache", same_attributes("share_cache")),
    )
)


def _cpp_paged_update(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include(PAGED_HEADER)
    cache, entry, index = (calls[op.operand(n)] for n in ("cache", "input", "update_index"))
    table = op.optional_operand("page_table")
    calls.run(
        "ttnn::experimental::paged_update_cache",
        cache,
        entry,
        Text("/*update_idxs=*/std::vector<uint32_t>{}"),
        index,
        Text("/*share_cache=*/true") if op.parameter("share_cache") else NULLOPT,
        NULLOPT if table is None else calls[table],
        Text("/*batch_offset=*/0"),
        compute_config(calls, op),
        NULLOPT,  # mesh coordinates
    )


def _row_per_user(op: CatalogueOp) -> Shards:
    _, users, heads, size = op.shape("input")
    return Shards.by_rows(users, (whole_tiles(heads), whole_tiles(size)))


_NUMBERS = {"layout": Layout.ROW_MAJOR, "data_types": (DataType.INT32,)}

register(
    TTNNDefinition(
        "ttnn.paged_update_cache",
        (
            OperandSpec("cache", data_types=PAGED_TYPES),
            OperandSpec("input", data_types=WRITTEN, shards=_row_per_user),
            operand("update_index", **_NUMBERS),
            optional("page_table", **_NUMBERS),
        ),
        (_SHARED, COMPUTE_CONFIG_ATTRIBUTE),
        results=0,
        verify=_verify_paged_update,
        numpy=_paged_update,
        compute="cache",
        in_place="cache",
        cpp=_cpp_paged_update,
        flops=no_flops,
        call_kind=CallKind.CACHE_WRITE,
    )
)

# paged_fill_cache


def _verify_paged_fill(op: CatalogueOp) -> None:
    """The input (users, heads, positions, head size) fits into the pages of its users."""
    cache, entry = _verify_pages(op)
    _verify_page_size(op, cache[2])
    require(op, entry[1] == cache[1], f"the {cache[1]} heads of the cache", entry)
    table = op.shape("page_table")
    fits = len(table) == 2 and entry[2] <= table[-1] * cache[2]
    require(op, fits, f"a page_table with pages for {entry[2]} positions", table)
    users = op.optional_operand("batch_idx_tensor")
    found = (1,) if users is None else shape_of(users.type)
    require(op, found == (entry[0],), "one user's number for each in the input", found)
    expect_integers(op, "page_table", "batch_idx_tensor")


def _paged_fill(call: Call) -> Sequence[Array]:
    """Writes the input; clears the rest of the last tile, because the device writes whole tiles."""
    cache, entry, table = (call.array(name) for name in ("cache", "input", "page_table"))
    users = call.optional("batch_idx_tensor")
    numbers = [0] if users is None else [int(number) for number in users.reshape(-1)]
    length, page_size = entry.shape[2], cache.shape[2]
    for user, part in zip(numbers, entry, strict=True):
        for place in range(-(-length // page_size)):
            page = int(table[user, place])
            if page == SKIPPED:
                continue
            rows = part[:, place * page_size : (place + 1) * page_size]
            count = rows.shape[1]
            cache[page, :, :count] = rows
            cache[page, :, count : whole_tiles(count)] = 0
    return []


def _lower_paged_fill(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
    """One call per user, with explicit padding of the last tile."""
    cache, entry = builder.operand(op, "cache"), builder.operand(op, "input")
    entry = builder.typecast(entry, element_of(cache.type))
    users, _, positions, _ = shape_of(entry.type)
    entry = builder.pad(entry, [(0, whole_tiles(positions) - positions), (0, 0)])
    numbers = builder.optional(op, "batch_idx_tensor")
    for user in range(users):
        number = None if numbers is None else builder.slice_dim(numbers, 0, user, user + 1)
        part = builder.slice_dim(entry, 0, user, user + 1)
        builder.emit_op(
            "paged_fill_cache", [cache, part, builder.operand(op, "page_table"), number], []
        )
    return []


register(
    TTIRDefinition(
        "ttir.paged_fill_cache",
        (
            operand("cache"),
            operand("input"),
            operand("page_table", input_kind="index", places=_pages),
            optional("batch_idx_tensor", input_kind="index", places=_users),
        ),
        results=0,
        verify=_verify_paged_fill,
        numpy=_paged_fill,
        in_place="cache",
        primitives=of_one_type,
        lower=_lower_paged_fill,
        cpu=cpu_call("cache"),
    )
)


def _cpp_paged_fill(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include(PAGED_HEADER)
    number = op.optional_operand("batch_idx_tensor")
    calls.run(
        "ttnn::experimental::paged_fill_cache",
        *(calls[op.operand(name)] for name in ("cache", "input", "page_table")),
        NULLOPT if number is None else calls[number],
        Text("/*batch_idx=*/0"),
        compute_config(calls, op),
        NULLOPT,  # mesh coordinates
    )


register(
    TTNNDefinition(
        "ttnn.paged_fill_cache",
        (
            OperandSpec("cache", data_types=PAGED_TYPES),
            OperandSpec("input", data_types=WRITTEN),
            operand("page_table", **_NUMBERS),
            optional("batch_idx_tensor", **_NUMBERS),
        ),
        (COMPUTE_CONFIG_ATTRIBUTE,),
        results=0,
        verify=_verify_paged_fill,
        numpy=_paged_fill,
        in_place="cache",
        cpp=_cpp_paged_fill,
        flops=no_flops,
    )
)
