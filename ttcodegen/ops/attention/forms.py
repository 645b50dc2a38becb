"""Forms of attention that a single device program computes."""

from __future__ import annotations

from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import tiles_along
from ttcodegen.dialects.ttnn.placement import declared_data_type

ATTENTION = "ttir.scaled_dot_product_attention"
_MOST_TILES = 640
"""Tiles of bf16 that a core holds at a time: 1.31 of the 1.43 MB of its L1."""
_FIXED_TILES = 32
"""Those that do not depend on shapes: masks, sums, results."""
_DATA_TYPES = {DataType.BFLOAT16, DataType.FLOAT32}


def keys_at_a_time(op: CatalogueOp) -> int:
    """Rows of tiles of the keys that L1 holds at a time, with the values and scores that belong to
    them: all of a head, or parts, one of which comes while the last is computed with; 0 if there is
    no room for any."""
    size, width = (tiles_along(op.shape(name)[3]) for name in ("query", "value"))
    keys = tiles_along(op.shape("key")[2])
    # Tiles of bf16 are counted; scores are f32.
    each = 2 if declared_data_type(op.operand("query")) is DataType.FLOAT32 else 1
    operands = each * (keys * (size + width + 1) + 2 * size)
    if operands + 2 * keys + _FIXED_TILES <= _MOST_TILES:
        return keys
    for rows in (8, 4, 2, 1):
        operands = each * (2 * rows * (size + width) + rows + 2 * size)
        if operands + 2 * rows + 4 * width + _FIXED_TILES <= _MOST_TILES:
            return rows
    return 0


def is_one_program(op: CatalogueOp) -> bool:
    """True if a program computes the op as it is: the scores of a row of tiles of queries, their
    softmax and the sums of values, with the keys and values of a head in L1, or parts of them.

    Windows, and causal masks of other queries than keys, become masks first.
    """
    data_types = {declared_data_type(op.operand(name)) for name in ("query", "key", "value")}
    if len(data_types) > 1 or not data_types <= _DATA_TYPES:
        return False
    if any(0 in shape_of(value.type) for value in op.operands):
        return False
    if op.parameter("sliding_window_size"):
        return False
    queries, keys = op.shape("query")[2], op.shape("key")[2]
    if op.parameter("is_causal") and queries != keys:
        return False
    mask, sink = (op.optional_operand(f"attention_{name}") for name in ("mask", "sink"))
    if sink is not None and declared_data_type(sink) not in _DATA_TYPES:
        return False
    if mask is not None and (
        declared_data_type(mask) not in _DATA_TYPES or shape_of(mask.type)[-1] != keys
    ):
        return False
    return declared_data_type(op.results[0]) in _DATA_TYPES and keys_at_a_time(op) > 0
