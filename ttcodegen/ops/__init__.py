"""The op catalogue: one file per op family.

- `attention/`: Attention, its key and value caches, rotary embedding, and sampling
- `collectives/`: Collectives of meshes
- `convolution/`: Convolution, pooling and upsampling: sliding windows over images
- `core/`: The language of the catalogue: definitions, traits, calls, tile lowerings, engines
- `device_constants`: Detection of loop-invariant constants of host functions
- `dialects`: The `ttir` and `ttnn` dialects of the catalogue, and the context of modules
- `elementwise/`: Elementwise ops
- `indexing/`: Slicing, gather, scatter and embedding
- `matmul/`: Matmul, dense and sparse
- `moe/`: Mixture of experts
- `movement/`: Reshape, permute, concat, padding, layouts and creation
- `reduction/`: Reductions, scans, sorting, softmax and norms
- `training/`: Ops of training steps
- `tt_lang`: Operations of TT-Lang that a model calls
"""

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
    "attention.paged_cache",
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
