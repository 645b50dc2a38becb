"""Contiguous KV caches, written in place."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, element_of, shape_of
from ttcodegen.dialects.operations.attribute_kinds import INTEGER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import is_traced
from ttcodegen.dialects.ttcore.tile import whole_tiles
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.attention.paged_cache import of_one_type, write_row, write_rows
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    COMPUTE_CONFIG_ATTRIBUTE,
    CppCalls,
    Default,
    Text,
    compute_config,
    trimmed,
)
from ttcodegen.ops.core.definition import (
    Call,
    OperandSpec,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    register,
)
from ttcodegen.ops.core.dimensions import Dimensions, expect_integers
from ttcodegen.ops.core.lowering import cpu_call, same_attributes
from ttcodegen.ops.core.traits import CallKind, Trait, no_flops

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
    """Labels of heads and head size; of users only if all are filled."""
    cache, entry = (shape_of(value.type) for value in op.operands)
    users = 0 if entry[0] == cache[0] else None
    return Dimensions([(users, 1, None, 2), (users, 1, None, 2)], [])


def _fill(call: Call) -> Sequence[Array]:
    """Writes the input; clears the rest of the last tile, because the device writes whole tiles."""
    cache, entry = call.array("cache"), call.array("input")
    users = slice(call["batch_offset"], call["batch_offset"] + entry.shape[0])
    positions = entry.shape[2]
    cache[users, :, :positions] = entry
    cache[users, :, positions : whole_tiles(positions)] = 0
    return []


def _lower_fill(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
    """One call per user, with explicit padding of the last tile."""
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
    """The input (1, heads, users, head size) has a row for each user of the cache, or for a range
    of them; there is one position for all, or one for each row.
    """
    _verify_rows(op, op.parameter("batch_offset"))


def _verify_rows(op: CatalogueOp, offset: int) -> None:
    """Verifies an update whose first row is for user `offset` of the cache."""
    cache, entry = _verify_cache(op)
    rows = entry[2]
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


def _verify_update_call(op: CatalogueOp) -> None:
    """The input has a row for each user of the cache, and batch_offset is 0."""
    _verify_rows(op, 0)
    cache, rows, offset = op.shape("cache"), op.shape("input")[2], op.parameter("batch_offset")
    if rows != cache[0]:
        raise VerifyException(
            f"{op.name}: expected an input with a row for each of the {cache[0]} users of the "
            f"cache, found {rows}"
        )
    if offset != 0:
        raise VerifyException(
            f"{op.name}: expected a batch_offset of 0, for the input has no rows but those of the "
            f"{cache[0]} users, found {offset}"
        )


def _update_dimensions(op: CatalogueOp) -> Dimensions:
    """Labels of heads and head size; of users only if all have a row."""
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
    """Lowers to update_cache for one position and all users, else to paged updates."""
    cache, entry, positions = (builder[value] for value in op.operands)
    rows, first = shape_of(entry.type)[2], op.parameter("batch_offset")
    (count,) = shape_of(positions.type) or (1,)
    # update_cache reads the position on the host: it would be fixed in replays of a trace.
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
    # The position is read on the host, which waits for the device.
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
        (attribute("batch_offset", INTEGER, 0), COMPUTE_CONFIG_ATTRIBUTE),
        results=0,
        verify=_verify_update_call,
        numpy=_update,
        compute="cache",
        in_place="cache",
        cpp=_cpp_update,
        traits=Trait.USES_HOST,
        flops=no_flops,
        call_kind=CallKind.CACHE_WRITE,
    )
)
