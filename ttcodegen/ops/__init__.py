"""The op catalogue: one file per op family."""

from __future__ import annotations

from functools import cache
from importlib import import_module

FAMILIES = (
    "elementwise.unary",
    "elementwise.activations",
    "elementwise.binary",
    "elementwise.ternary",
    "movement.creation",
    "movement.data_movement",
    "movement.rearrangement",
    "indexing.slicing",
    "movement.layout",
    "matmul.matmul",
    "matmul.sparse_matmul",
    "reduction.reduce",
    "reduction.sorting",
    "reduction.scans",
    "indexing.embedding",
    "attention.kv_cache",
    "reduction.norms",
    "reduction.batch_norm",
    "convolution.convolution",
    "convolution.prepared_weights",
    "convolution.ttnn_calls",
    "convolution.convolution3d",
    "convolution.general",
    "convolution.device_windows",
    "convolution.pooling",
    "convolution.pooling_general",
    "tt_lang",
    "convolution.upsample",
    "attention.sdpa",
    "attention.sdpa_decode",
    "attention.sdpa_paged",
    "attention.heads",
    "indexing.gather_scatter",
    "indexing.dynamic_slicing",
    "training.steps",
    "training.attention",
    "moe.routing",
    "moe.dispatch",
    "moe.compute",
    "moe.moe_gpt",
    "moe.selective_reduce_combine",
    "attention.sampling",
    "elementwise.quantization",
    "collectives.collectives",
    "collectives.ttnn_calls",
    "collectives.mesh_sharding",
)


@cache
def load() -> None:
    """Imports every family, so that the registers of `definition` are complete."""
    for family in FAMILIES:
        import_module(f"ttcodegen.ops.{family}")
