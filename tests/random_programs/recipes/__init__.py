"""Recipes that add each op of the catalogue to a random program.

Elementwise ops need nothing here: their recipes follow from their rows. An op with attributes or
shapes of its own has a function in one of the files; what has none is in `WITHOUT_RECIPE`.
"""

from __future__ import annotations

from tests.random_programs.generator import Recipe
from tests.random_programs.recipes import (
    indexing,
    movement,
    products,
    quantization,
    reductions,
    regular,
    windows,
)
from ttcodegen import ops

ops.load()

RECIPES: dict[str, Recipe] = {
    **regular.recipes(),
    **movement.RECIPES,
    **reductions.RECIPES,
    **products.RECIPES,
    **windows.RECIPES,
    **indexing.RECIPES,
    **quantization.RECIPES,
}
"""A recipe for each op, by its short name."""

_SOURCE = "other ops get it as an operand"
_DRAWN = "each run draws other numbers"
_CACHE = "it overwrites an argument"
_DECODE = "a step of decoding, whose operands have one shape only"
_TRAINING = "a step of training, whose operands belong to one another"
_EXPERTS = "experts of tokens, whose operands have one form only"
_REWRITTEN = "it is rewritten with ops that have recipes"
_LOWERED = "device programs are made of it; convolutions and pools with recipes come before it"
_MESH = "it has operands on several devices"

OF_PROGRAMS = {
    "tt_lang_op": "its meaning is a program beside the module: tests/lang/test_calling.py"
}
"""Ops that no module has a case of by itself."""

WITHOUT_RECIPE = {
    "convolution": _REWRITTEN,
    "pooling": _REWRITTEN,
    "full": _SOURCE,
    "zeros": _SOURCE,
    "ones": _SOURCE,
    "constant": _SOURCE,
    "clamp_scalar": "it keeps operands in their domains",
    "empty": "it holds anything",
    "rand": _DRAWN,
    "dropout": _DRAWN,
    "sampling": _DRAWN,
    "bitcast_convert": "the numbers that it gives are of any size",
    "fill_cache": _CACHE,
    "update_cache": _CACHE,
    "paged_fill_cache": _CACHE,
    "paged_update_cache": _CACHE,
    "scaled_dot_product_attention_decode": _DECODE,
    "paged_scaled_dot_product_attention_decode": _DECODE,
    "chunked_scaled_dot_product_attention": _DECODE,
    "paged_flash_multi_latent_attention_decode": _DECODE,
    "adamw": _TRAINING,
    "sdpa_fw": _TRAINING,
    "sdpa_bw": _TRAINING,
    "topk_router_gpt": _EXPERTS,
    "moe_expert_token_remap": _EXPERTS,
    "all_to_all_dispatch": _EXPERTS,
    "all_to_all_dispatch_metadata": _EXPERTS,
    "all_to_all_combine": _EXPERTS,
    "moe_compute": _EXPERTS,
    "moe_gpt": _EXPERTS,
    "selective_reduce_combine": _EXPERTS,
    "sparse_matmul": _EXPERTS,
    "slice_at": _LOWERED,
    "window_product": _LOWERED,
    "window_reduction": _LOWERED,
    "all_reduce_async": _MESH,
    "all_to_all": _MESH,
    "collective_broadcast": _MESH,
    "distributed_layer_norm": _MESH,
    "distributed_rms_norm": _MESH,
    "mesh_partition": _MESH,
}
"""The ops that no random program has, and why."""
