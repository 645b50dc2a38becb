"""Key and value caches, contiguous or stored in pages, written in place."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType, i32
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, element_of, shape_of
from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN, INTEGER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import is_traced
from ttcodegen.dialects.ttcore.shards import Shards
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, whole_tiles
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    COMPUTE_CONFIG_ATTRIBUTE,
    NULLOPT,
    CppCalls,
    Default,
    Text,
    compute_config,
    trimmed,
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
from ttcodegen.ops.core.dimensions import Dimensions, expect_integers, known_parameter, require
from ttcodegen.ops.core.engine import in_source
from ttcodegen.ops.core.lowering import cpu_call, same_attributes
from ttcodegen.ops.core.traits import CallKind, Trait, no_flops
from ttcodegen.systems.cards import NARROWEST

PAGED_HEADER = "ttnn/operations/experimental/paged_cache/paged_cache.hpp"
MOST_USERS = NARROWEST.cores
"""Each user's rows are on a separate core: as many as every card has."""
PAGED_TYPES = (
    DataType.BFLOAT16,
    DataType.FLOAT32,
    DataType.BFLOAT8_B,
    DataType.BFLOAT4_B,
)
WRITTEN = (DataType.BFLOAT16, DataType.FLOAT32)
SKIPPED = -1
"""The position of a user, or the number of a page, that nothing is written to."""


def _verify_pages(op: CatalogueOp) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Cache (pages, heads, page size, head size) and input have equal head sizes."""
    cache, entry = op.shape("cache"), op.shape("input")
    fits = len(cache) == 4 and len(entry) == 4 and cache[3] == entry[3]
    require(op, fits, "a cache and an input of rank 4 and one head size", f"{cache} and {entry}")
    return cache, entry


def _verify_page_size(op: CatalogueOp, size: int) -> None:
    require(op, size % TILE_SIDE == 0, f"pages of a multiple of {TILE_SIDE} positions", size)


def of_one_type(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue] | None:
    """An op on a cache with its input in the data type of the cache, None if it is that."""
    element = element_of(op.operand("cache").type)
    if element_of(op.operand("input").type) == element:
        return None
    operands = {name: list(group) for name, group in op.operand_groups().items()}
    operands["input"] = [builder.typecast(builder.operand(op, "input"), element)]
    builder.emit_op(op.definition.short_name, list(operands.values()), [], **op.parameters())
    return []


# paged_update_cache


def _verify_paged_update(op: CatalogueOp) -> None:
    """The input (1, users, heads, head size) has the cache's heads, or those and padding."""
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
    """Writes one row for each head to a position of a cache. On the device the tiles that hold the
    position go through the source registers, and all of their rows with them."""
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
    """Writes rows (1, users, heads, head size) into a cache at the position of each user, who has
    the pages that the table says; without one, they are users one after the other, from `first` on.

    The library reads one tile of heads of each user, from a core of its own, and takes as many
    users as there are cores; what is for more or fewer users than a cache has is written by way of
    its pages. Raises VerifyException if they are no whole tiles then.
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
        places = builder.slice_dim(positions, 0, begin, end)
        builder.emit_op(
            "paged_update_cache", [cache, part, places, pages], [], share_cache=share_cache
        )


def _page_per_user(builder: OpBuilder, first: int, users: int) -> SSAValue:
    """The page table of a cache whose pages hold all positions of a user."""
    type_ = TensorType(i32, [users, 1])
    numbers = DenseIntOrFPElementsAttr.from_list(type_, list(range(first, first + users)))
    return builder.emit("constant", [], type_, value=numbers)


def _positions(op: CatalogueOp) -> int:
    """Counts the cache positions of each user."""
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
    """The rest of the last tile is cleared: the device writes whole tiles."""
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
    """One call per user, with the padding of the last tile made explicit."""
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


HEADER = "ttnn/operations/kv_cache/kv_cache.hpp"
CACHED = (DataType.BFLOAT16, DataType.FLOAT32, DataType.BFLOAT8_B)


def _verify_cache(op: CatalogueOp) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Cache (users, heads, positions, head size) and input have equal heads and head sizes."""
    cache, entry = op.shape("cache"), op.shape("input")
    if len(cache) != 4 or len(entry) != 4 or (cache[1], cache[3]) != (entry[1], entry[3]):
        raise VerifyException(
            f"{op.name}: expected a cache (users, heads, positions, head size) and an input with "
            f"as many heads of that size, found {cache} and {entry}"
        )
    return cache, entry


# fill_cache


def _verify_fill(op: CatalogueOp) -> None:
    """The input's users and positions are within the cache."""
    cache, entry = _verify_cache(op)
    offset = op.parameter("batch_offset")
    if not 0 <= offset <= cache[0] - entry[0] or entry[2] > cache[2]:
        raise VerifyException(
            f"{op.name}: an input of shape {entry} does not fit into a cache of shape {cache} "
            f"from user {offset} on"
        )


def _fill_dimensions(op: CatalogueOp) -> Dimensions:
    """Users, heads and the elements of a head go together; users only where all are filled."""
    cache, entry = (shape_of(value.type) for value in op.operands)
    users = 0 if entry[0] == cache[0] else None
    return Dimensions([(users, 1, None, 2), (users, 1, None, 2)], [])


def _fill(call: Call) -> Sequence[Array]:
    """The rest of the last tile is cleared: the device writes whole tiles."""
    cache, entry = call.array("cache"), call.array("input")
    users = slice(call["batch_offset"], call["batch_offset"] + entry.shape[0])
    positions = entry.shape[2]
    cache[users, :, :positions] = entry
    cache[users, :, positions : whole_tiles(positions)] = 0
    return []


def _lower_fill(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
    """One call per user, with the padding of the last tile made explicit."""
    cache, entry = builder.operand(op, "cache"), builder.operand(op, "input")
    entry = builder.typecast(entry, element_of(cache.type))
    users, _, positions, _ = shape_of(entry.type)
    missing = min(whole_tiles(positions), shape_of(cache.type)[2]) - positions
    entry = builder.pad(entry, [(0, missing), (0, 0)])
    for user in range(users):
        part = builder.slice_dim(entry, 0, user, user + 1)
        builder.emit_op(
            "fill_cache", [cache, part], [], batch_offset=op.parameter("batch_offset") + user
        )
    return []


register(
    TTIRDefinition(
        "ttir.fill_cache",
        (operand("cache"), operand("input")),
        (attribute("batch_offset", INTEGER, 0),),
        results=0,
        verify=_verify_fill,
        numpy=_fill,
        in_place="cache",
        dimensions=_fill_dimensions,
        primitives=of_one_type,
        lower=_lower_fill,
        cpu=cpu_call("cache", same_attributes("batch_offset")),
    )
)


def _cpp_fill(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include(HEADER)
    cache, entry = (calls[value] for value in op.operands)
    calls.run("ttnn::fill_cache", cache, entry, Text(str(op.parameter("batch_offset"))))


register(
    TTNNDefinition(
        "ttnn.fill_cache",
        (OperandSpec("cache", data_types=CACHED), OperandSpec("input", data_types=CACHED)),
        (attribute("batch_offset", INTEGER, 0),),
        results=0,
        verify=_verify_fill,
        numpy=_fill,
        in_place="cache",
        cpp=_cpp_fill,
        flops=no_flops,
        call_kind=CallKind.CACHE_WRITE,
    )
)

# update_cache


def _verify_update(op: CatalogueOp) -> None:
    """The input (1, heads, users, head size) has a row for each user of the cache, or for some of
    them one after the other; there is one position for all, or one for each row."""
    cache, entry = _verify_cache(op)
    offset, rows = known_parameter(op, "batch_offset", 0), entry[2]
    if entry[0] != 1 or not 0 <= offset <= cache[0] - rows:
        raise VerifyException(
            f"{op.name}: expected an input (1, heads, users, head size) with rows for the "
            f"{cache[0]} users of the cache or for some of them, found shape {entry} from user "
            f"{offset} on"
        )
    found = op.shape("update_index")
    if found not in ((), (1,), (rows,)):
        raise VerifyException(
            f"{op.name}: expected an update_index of one element or of {rows}, one for each row of "
            f"the input, found shape {found}"
        )
    expect_integers(op, "update_index")


def _update_dimensions(op: CatalogueOp) -> Dimensions:
    """Users, heads and the elements of a head go together; users only where all have a row."""
    cache, entry, index = (shape_of(value.type) for value in op.operands)
    users = 0 if entry[2] == cache[0] else None
    positions = tuple([users if size == entry[2] and size > 1 else None for size in index])
    return Dimensions([(users, 1, None, 2), (None, 1, users, 2), positions], [])


def _update(call: Call) -> Sequence[Array]:
    entry = call.array("input")
    positions = call.array("update_index").reshape(-1).astype(np.int64)
    first = call.attributes.get("batch_offset", 0)
    for row in range(entry.shape[2]):
        position = positions[row if len(positions) > 1 else 0]
        write_row(call, first + row, int(position), entry[0, :, row])
    return []


def _lower_update(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
    """The library's own has one position, and rows for all users; other forms are rows of pages."""
    cache, entry, positions = (builder[value] for value in op.operands)
    rows, first = shape_of(entry.type)[2], op.parameter("batch_offset")
    (count,) = shape_of(positions.type) or (1,)
    # A position that the host reads would be the same in each replay of a trace.
    if count == 1 and rows == shape_of(cache.type)[0] and not is_traced(op):
        builder.emit_op("update_cache", [cache, entry, positions], [])
        return []
    positions = builder.repeat(builder.reshape(positions, [count]), [rows])
    entry = builder.permute(entry, [0, 2, 1, 3])
    write_rows(builder, op, cache, entry, positions, first=first)
    return []


register(
    TTIRDefinition(
        "ttir.update_cache",
        (
            operand("cache"),
            operand("input"),
            OperandSpec("update_index", input_kind="index", places=lambda op: op.shape("cache")[2]),
        ),
        (attribute("batch_offset", INTEGER, 0),),
        results=0,
        verify=_verify_update,
        numpy=_update,
        in_place="cache",
        dimensions=_update_dimensions,
        primitives=of_one_type,
        lower=_lower_update,
        cpu=cpu_call("cache", same_attributes("batch_offset")),
    )
)


def _cpp_update(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include(HEADER)
    calls.include_support("tensor.hpp")
    cache, entry, index = (calls[value] for value in op.operands)
    # The position is an integer of the host, so the device is waited for.
    position = calls.call("support::read_index", index, type="uint32_t")
    arguments = [cache, entry, position, Default("/*batch_offset=*/0"), compute_config(calls, op)]
    calls.run("ttnn::update_cache", *trimmed(arguments))


register(
    TTNNDefinition(
        "ttnn.update_cache",
        (
            OperandSpec("cache", data_types=CACHED),
            OperandSpec("input", data_types=CACHED),
            OperandSpec("update_index", layout=None, data_types=(DataType.INT32, DataType.UINT32)),
        ),
        (COMPUTE_CONFIG_ATTRIBUTE,),
        results=0,
        verify=_verify_update,
        numpy=_update,
        compute="cache",
        in_place="cache",
        cpp=_cpp_update,
        traits=Trait.USES_HOST,
        flops=no_flops,
        call_kind=CallKind.CACHE_WRITE,
    )
)
