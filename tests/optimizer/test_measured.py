"""The model of L1 against what calls of the release were measured to take."""

from __future__ import annotations

import re

import pytest

from tests.optimizer.measured import Measured, every_row, rows, table
from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.systems.cards import default_system

TOLERANCE = 0.05
BUFFERS = {
    "matmul": 0.97, "linear": 0.97, "relu": 0.95, "add": 0.97, "where": 0.87, "multiply": 0.83,
    "typecast": 0.95, "to_memory_config": 0.93, "to_layout": 0.96, "reshape": 0.95, "sum": 0.96,
    "slice_static": 0.98, "concat": 0.99, "pad": 0.98, "softmax": 1.0, "layer_norm": 0.94,
    "scaled_dot_product_attention": 0.96, "nlp_create_qkv_heads_decode": 1.0, "max": 0.83,
    "transpose": 0.98, "permute": 0.94, "scaled_dot_product_attention_decode": 1.0,
    "paged_scaled_dot_product_attention_decode": 1.0, "nlp_concat_heads_decode": 1.0,
    "update_cache": 1.0, "paged_update_cache": 1.0, "fill_cache": 1.0, "max_pool2d": 0.97,
    "repeat": 0.96, "embedding": 1.0, "argmax": 1.0, "prod": 1.0, "concatenate_heads": 0.78,
    "split_query_key_value_and_split_heads": 1.0, "rotary_embedding": 1.0,
    "rotary_embedding_llama": 1.0, "conv2d": 0.98,
}  # fmt: skip
"""The calls whose circular buffers are modelled, and for what part of the measured rows they are
right."""
ALL_BUFFERS = 0.96
"""The same for all of them together."""
EVERY_ROW = 0.91
"""The same for every accepted row of the table."""
EVERY_PEAK = 0.92
"""The same for the most that tensors take while a call runs."""
NOT_READ = frozenset({"conv_transpose2d"})
"""The calls whose rows do not give their weights."""
FEWEST = 8
"""Fewer rows of a call say nothing."""
TENSORS = {"matmul": 0.95, "relu": 0.95, "add": 0.9, "layer_norm": 0.9, "softmax": 0.9}
"""The same for the tensors, in tiles: others have intermediate ones."""


@pytest.fixture(scope="module")
def measured() -> list[Measured]:
    path = table()
    if path is None:
        pytest.skip("there is no table of measured calls: name it in TTCODEGEN_SHARDED_RULES")
    found = rows(path, frozenset(BUFFERS) | frozenset(TENSORS))
    # Calls beside a resident tensor, or into a given one, have more tensors than they name.
    return [row for row in found if not re.search(r"resident|\bout=", row.variant)]


def share(found: list[tuple[int, int]]) -> float:
    """The part of pairs of estimate and measurement that agree."""
    right = sum(abs(guess - truth) <= TOLERANCE * truth for guess, truth in found)
    return right / len(found)


def buffers(measured: list[Measured], op: str) -> list[tuple[int, int]]:
    """Estimates and measurements."""
    model = CostModel(default_system("wormhole_b0").chip)
    return [
        (model.cost(row.call).circular_buffers, row.circular_buffers)
        for row in measured
        if row.op == op and row.call is not None and "same tensor" not in row.variant
    ]


@pytest.mark.parametrize("op", BUFFERS)
def test_circular_buffers_are_those_of_the_release(op: str, measured: list[Measured]) -> None:
    found = buffers(measured, op)
    assert len(found) >= FEWEST
    assert share(found) >= BUFFERS[op]


def test_circular_buffers_of_all_calls(measured: list[Measured]) -> None:
    found = [pair for op in BUFFERS for pair in buffers(measured, op)]
    print(f"{share(found):.1%} of {len(found)} calls within {TOLERANCE:.0%}")
    assert share(found) >= ALL_BUFFERS


def test_every_row_of_the_table_counts() -> None:
    """Rows of calls that the model does not know, or that cannot be read, count as wrong."""
    path = table()
    if path is None:
        pytest.skip("there is no table of measured calls: name it in TTCODEGEN_SHARDED_RULES")
    model = CostModel(default_system("wormhole_b0").chip)
    right = total = tensors = 0
    for row in every_row(path):
        total += 1
        # What no rule is for, and has other operands than a rule reads, is not guessed.
        if row.call is None or row.op in NOT_READ:
            continue
        cost = model.cost(row.call)
        right += (
            abs(cost.circular_buffers - row.circular_buffers) <= TOLERANCE * row.circular_buffers
        )
        tensors += abs(cost.tensors + cost.intermediates - row.peak) <= TOLERANCE * row.peak
    print(f"circular buffers of {right / total:.1%}, tensors of {tensors / total:.1%} of {total}")
    assert total > 15_000
    assert right / total >= EVERY_ROW
    assert tensors / total >= EVERY_PEAK


@pytest.mark.parametrize("op", TENSORS)
def test_tensors_take_what_they_take_on_the_release(op: str, measured: list[Measured]) -> None:
    model = CostModel(default_system("wormhole_b0").chip)
    found = [
        (sum(model.bank_bytes(p) for p in (*row.call.operands, *row.call.results)), row.peak)
        for row in measured
        if row.op == op
        and row.call is not None
        and all(p.layout is Layout.TILE for p in row.call.operands)
    ]
    assert len(found) > 50
    assert share(found) >= TENSORS[op]
