"""Every op of TTIR is among those whose results on edges are compared with PyTorch, or has a test
of its own, for what three tables of ops cannot say."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.ops_table import TTIR

pytest.importorskip("torch")

from tests.op_cases import test_edge_families as families
from tests.op_cases import test_edge_operands as operands
from tests.op_cases import test_edge_values as values

TESTS = Path(__file__).parents[1]
ELSEWHERE = {
    # Several chips.
    "ops/test_collectives.py": "all_gather all_reduce reduce_scatter mesh_partition all_to_all "
    "collective_broadcast collective_permute mesh_shard distributed_rms_norm "
    "distributed_layer_norm",
    "op_cases/meshes.mlir": "all_reduce_async",
    "ops/test_experts_on_meshes.py": "all_to_all_dispatch all_to_all_combine "
    "moe_expert_token_remap",
    # Routing of tokens, which has no numbers at the edge.
    "ops/test_experts.py": "topk_router_gpt moe_compute all_to_all_dispatch_metadata",
    "ops/test_moe_gpt.py": "moe_gpt selective_reduce_combine",
    # Attention and caches: masks that hide whole rows, positions at the ends.
    "ops/test_attention.py": "paged_flash_multi_latent_attention_decode",
    "ops/test_attention_training.py": "sdpa_bw",
    "ops/test_sampling.py": "sampling",
    # Values that come from attributes.
    "ops/test_verifiers.py": "empty",
    "ttmetal/test_random_numbers.py": "rand",
    "random_programs/recipes/__init__.py": "slice_at window_reduction tt_lang_op",
    "ttmetal/test_windows.py": "window_product",
    "ops/test_sparse_matmul.py": "sparse_matmul",
    "ttmetal/elementwise.py": "to_layout",
    "parsing/test_operations.py": "ttnn_metal_layout_cast",
}
"""Files of the tests, by what of the ops they test."""
FEWEST = 155
"""Ops in the three tables."""


def compared() -> set[str]:
    return {op.name for op in values.OPS} | {row.name for row in families.ROWS} | operands.OPS


def test_every_op_is_compared_on_edges_or_has_its_own_test() -> None:
    named = [name for text in ELSEWHERE.values() for name in text.split()]
    assert len(named) == len(set(named))
    ops = {definition.short_name for definition in TTIR.values()}
    assert compared() | set(named) == ops
    assert compared() & set(named) == set()
    assert len(compared()) >= FEWEST


@pytest.mark.parametrize("file", ELSEWHERE)
def test_the_named_tests_are_of_their_ops(file: str) -> None:
    text = (TESTS / file).read_text("utf-8")
    assert [name for name in ELSEWHERE[file].split() if name not in text] == []


def test_ops_are_compared_with_all_types_that_they_take() -> None:
    """Integers of every width for what moves elements, and for what computes with integers."""
    moving = {row.name for row in families.MOVEMENT}
    assert all(row.types == families.EVERY for row in families.MOVEMENT)
    integers = {op.name for op in values.OPS if op.integers}
    assert len(moving) >= 18
    assert len(integers) >= 30
