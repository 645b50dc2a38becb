"""The op catalogue: one file per op family."""

from __future__ import annotations

from functools import cache
from importlib import import_module

FAMILIES = (
    "elementwise_unary",
    "elementwise_binary",
    "elementwise_ternary",
    "creation",
    "data_movement",
    "padding",
    "slicing",
    "layout",
    "matmul",
    "sparse_matmul",
    "reduction",
    "argmax",
    "scans",
    "embedding",
    "kv_cache",
    "kv_cache_paged",
    "softmax",
    "normalization",
    "batch_norm",
    "convolution",
    "convolution_calls",
    "convolution1d",
    "convolution3d",
    "convolution_general",
    "windows",
    "pooling",
    "pooling_calls",
    "pooling_general",
    "tt_lang",
    "upsample",
    "attention",
    "attention_decode",
    "attention_heads",
    "rotary",
    "attention_heads_decode",
    "sorting",
    "indexing",
    "dynamic_slicing",
    "rearrangement",
    "training",
    "attention_training",
    "experts",
    "experts_travel",
    "experts_travel_calls",
    "expert_remap",
    "moe_compute",
    "moe_gpt",
    "selective_reduce_combine",
    "attention_latent",
    "sampling",
    "quantization",
    "collectives",
    "collective_calls",
    "point_to_point",
    "mesh",
    "mesh_norms",
    "refusals",
)


@cache
def load() -> None:
    """Imports every family, so that the registers of `definition` are complete."""
    for family in FAMILIES:
        import_module(f"ttcodegen.ops.{family}")
