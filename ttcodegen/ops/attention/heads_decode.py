"""Heads of one token per user: on a core of their own for each user, as caches and attention of
decoding take them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN, INTEGER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.shards import GRID_WIDTH, MemoryLayout, Shards
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, whole_tiles
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core import calls as cpp_calls
from ttcodegen.ops.core.calls import (
    NULLOPT,
    CppCalls,
    Text,
    attribute_,
    cpp_call,
    cpp_text,
    operand_,
)
from ttcodegen.ops.core.definition import (
    Call,
    OperandSpec,
    ResultRule,
    TTNNDefinition,
    attribute,
    register,
)
from ttcodegen.ops.core.shape_checks import expect_shape
from ttcodegen.ops.core.work import no_flops

MOST_USERS = 32
"""The rows of one tile."""
MOVED = (DataType.BFLOAT16, DataType.FLOAT32)


def takes_users(users: int) -> bool:
    """True if the library puts so many users' heads together again: their cores are a rectangle
    from the first core on (`nlp_concat_heads_decode` of 0.70.1 wants the cores by name else)."""
    return 0 < users <= MOST_USERS and (users <= GRID_WIDTH or users % GRID_WIDTH == 0)


def _user_on_each_core(shape: Sequence[int]) -> Shards:
    """The shards of heads (1, users, heads, size)."""
    _, users, heads, size = shape
    return Shards.by_rows(users, (whole_tiles(heads), whole_tiles(size)))


# nlp_create_qkv_heads_decode


def _head_counts(op: CatalogueOp) -> tuple[int, int]:
    """Counts the query heads and the key/value heads."""
    heads, key_heads = op.parameter("num_heads"), op.parameter("num_kv_heads")
    return heads, heads if key_heads is None else key_heads


def _verify_create(op: CatalogueOp) -> None:
    """Rows (1, 1, users, width) become queries, keys and values (1, users, heads, head size)."""
    shape = op.shape("input")
    heads, key_heads = _head_counts(op)
    if len(shape) != 4 or shape[:2] != (1, 1) or shape[2] > MOST_USERS:
        raise VerifyException(
            f"{op.name}: expected rows (1, 1, users, width) of at most {MOST_USERS} users, found "
            f"{shape}"
        )
    if not 0 < key_heads <= heads <= TILE_SIDE or shape[3] % (heads + 2 * key_heads):
        raise VerifyException(
            f"{op.name}: {heads} heads of queries and {key_heads} of keys and values do not "
            f"divide rows of {shape[3]}; there are at most {TILE_SIDE}"
        )
    size = shape[3] // (heads + 2 * key_heads)
    if size % TILE_SIDE:
        raise VerifyException(f"{op.name}: the library takes heads of whole tiles, found {size}")
    for index, count in enumerate((heads, key_heads, key_heads)):
        expect_shape(op, (1, shape[2], count, size), index)


def _create(call: Call) -> list[Array]:
    rows = call.array("input")
    users = rows.shape[2]
    heads = call["num_heads"]
    key_heads = heads if call["num_kv_heads"] is None else call["num_kv_heads"]
    parts = rows.reshape(1, users, heads + 2 * key_heads, -1)
    return list(np.split(parts, [heads, heads + key_heads], axis=2))


def _cpp_create(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include(
        "ttnn/operations/experimental/transformer/nlp_create_qkv_heads_decode/"
        "nlp_create_qkv_heads_decode.hpp"
    )
    # The function takes a reference to what may hold its results.
    type_ = "std::optional<std::array<ttnn::Tensor, 3>>"
    outputs = cpp_calls.Call(type_, (), type_, variable="preallocated")
    key_heads = op.parameter("num_kv_heads")
    arguments = [
        calls[op.operand("input")],
        Text(str(op.parameter("num_heads"))),
        NULLOPT if key_heads is None else Text(str(key_heads)),
        outputs,
    ]
    if not op.parameter("overlap_qk_coregrid"):
        arguments.append(Text(cpp_text(False)))
    calls.bind_several(
        op.results,
        "ttnn::experimental::nlp_create_qkv_heads_decode",
        *arguments,
    )


def _created(op: CatalogueOp, index: int) -> tuple[MemoryLayout, Shards]:
    return "height_sharded", _user_on_each_core(shape_of(op.results[index].type))


register(
    TTNNDefinition(
        "ttnn.nlp_create_qkv_heads_decode",
        (OperandSpec("input", data_types=MOVED),),
        (
            attribute("num_heads", INTEGER),
            attribute("num_kv_heads", INTEGER, None),
            attribute("overlap_qk_coregrid", BOOLEAN, True),
        ),
        results=3,
        result_rules=(ResultRule(shards=_created),),
        verify=_verify_create,
        numpy=_create,
        cpp=_cpp_create,
        flops=no_flops,
        rearranges=True,
        nouns=("queries", "keys", "values"),
    )
)

# nlp_concat_heads_decode


def _verify_concatenate(op: CatalogueOp) -> None:
    """Heads (1, users, heads, head size) become rows (1, 1, 32, heads * head size)."""
    shape, heads = op.shape("input"), op.parameter("num_heads")
    if len(shape) != 4 or shape[0] != 1 or shape[3] % TILE_SIDE or not takes_users(shape[1]):
        raise VerifyException(
            f"{op.name}: expected heads (1, users, heads, head size) of whole tiles, and up to "
            f"{GRID_WIDTH} users or a multiple of that up to {MOST_USERS}, found {shape}"
        )
    if not 0 < heads <= shape[2]:
        raise VerifyException(f"{op.name}: there are no {heads} heads in {shape}")
    expect_shape(op, (1, 1, MOST_USERS, heads * shape[3]))


def _concatenate(call: Call) -> Array:
    """Rows that belong to no user are 0 here; they are never read."""
    heads = call.array("input")[0, :, : call["num_heads"]]
    rows = heads.reshape(heads.shape[0], -1)
    missing = MOST_USERS - rows.shape[0]
    return np.pad(rows, ((0, missing), (0, 0))).reshape(1, 1, MOST_USERS, -1)


def _head_on_each_core(op: CatalogueOp, index: int) -> tuple[MemoryLayout, Shards]:
    heads, size = op.parameter("num_heads"), op.shape("input")[3]
    return "width_sharded", Shards.by_rows(heads, (MOST_USERS, size))


def _concatenated(op: CatalogueOp) -> Shards:
    return _user_on_each_core(op.shape("input"))


register(
    TTNNDefinition(
        "ttnn.nlp_concat_heads_decode",
        (OperandSpec("input", data_types=MOVED, shards=_concatenated),),
        (attribute("num_heads", INTEGER),),
        result_rules=(ResultRule(shards=_head_on_each_core),),
        verify=_verify_concatenate,
        numpy=_concatenate,
        cpp=cpp_call(
            "ttnn::experimental::nlp_concat_heads_decode",
            "ttnn/operations/experimental/transformer/nlp_concat_heads_decode/"
            "nlp_concat_heads_decode.hpp",
            operand_("input"),
            attribute_("num_heads"),
        ),
        flops=no_flops,
        rearranges=True,
        participle="joined",
    )
)
