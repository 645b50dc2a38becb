"""tt-metal 0.70.1: the release of the calls in the catalogue.

Names and order of parameters are those of its declarations (`ttnn/operations/`).
"""

from __future__ import annotations

from collections.abc import Mapping

from ttcodegen.systems.releases.release import Release

_CONVOLUTION_CONFIGS = (
    "dtype bias_tensor conv_config compute_config memory_config dram_slice_config"
)
_IMAGE = "input_memory_config input_layout"
_PREPARATION = "device input_dtype output_dtype conv_config compute_config dram_slice_config"
_SIZES = "batch_size input_height input_width"
_POOL = f"input_tensor {_SIZES} channels kernel_size stride padding"
_POOL_MEMORY = "memory_config dram_slice_config applied_shard_scheme"
_PRODUCT = (
    "transpose_a transpose_b memory_config dtype program_config activation compute_kernel_config "
    "core_grid output_tile"
)
_REDUCTION = (
    "input_tensor dim keepdim memory_config compute_kernel_config scalar correction sub_core_grids"
)
_NORM = (
    "input_tensor epsilon weight bias residual_input_tensor memory_config program_config "
    "compute_kernel_config"
)
_QUANTIZATION = "axis output_dtype memory_config"

PARAMETERS: Mapping[str, tuple[str, ...]] = {
    name: tuple(parameters.split())
    for name, parameters in {
        "conv2d": f"input_tensor weight_tensor device in_channels out_channels {_SIZES} "
        f"kernel_size stride padding dilation groups {_CONVOLUTION_CONFIGS}",
        "prepare_conv_weights": f"weight_tensor {_IMAGE} weights_format in_channels out_channels "
        f"{_SIZES} kernel_size stride padding dilation has_bias groups {_PREPARATION}",
        "prepare_conv_bias": f"bias_tensor {_IMAGE} in_channels out_channels {_SIZES} kernel_size "
        f"stride padding dilation groups {_PREPARATION}",
        "conv_transpose2d": f"input_tensor weight_tensor device in_channels out_channels {_SIZES} "
        f"kernel_size stride padding output_padding dilation groups {_CONVOLUTION_CONFIGS}",
        "conv3d": "input_tensor weight_tensor device bias_tensor config dtype output_channels "
        "kernel_size stride padding dilation padding_mode groups memory_config "
        "compute_kernel_config",
        "max_pool2d": f"{_POOL} dilation ceil_mode {_POOL_MEMORY} deallocate_input "
        "reallocate_halo_output return_indices",
        "avg_pool2d": f"{_POOL} ceil_mode count_include_pad divisor_override {_POOL_MEMORY} "
        "compute_kernel_config",
        "matmul": f"input_tensor_a input_tensor_b {_PRODUCT}",
        "sparse_matmul": "input_tensor_a input_tensor_b sparsity program_config nnz "
        "is_input_a_sparse is_input_b_sparse memory_config dtype compute_kernel_config",
        "linear": f"input_tensor_a input_tensor_b bias {_PRODUCT}",
        "layer_norm": _NORM,
        "rms_norm": _NORM,
        "batch_norm": "input running_mean running_var training eps momentum weight bias output "
        "memory_config compute_kernel_config",
        "group_norm": "input_tensor num_groups epsilon input_mask weight bias reciprocals "
        "memory_config dtype core_grid inplace output_layout num_out_blocks "
        "compute_kernel_config",
        "softmax": "input_tensor dim memory_config compute_kernel_config numeric_stable",
        "sum": _REDUCTION,
        "mean": _REDUCTION,
        "max": _REDUCTION,
        "min": _REDUCTION,
        "std": _REDUCTION,
        "var": _REDUCTION,
        "argmax": "input_tensor dim keepdim sub_core_grids use_multicore memory_config",
        "topk": "input_tensor k dim largest sorted memory_config sub_core_grids",
        "scaled_dot_product_attention": "query key value attn_mask is_causal scale "
        "sliding_window_size memory_config program_config compute_kernel_config attention_sink",
        "scaled_dot_product_attention_decode": "query key value is_causal attn_mask cur_pos "
        "cur_pos_tensor attention_sink scale sliding_window_size memory_config program_config "
        "compute_kernel_config share_cache",
        "paged_scaled_dot_product_attention_decode": "query key value page_table is_causal "
        "attn_mask cur_pos_tensor attention_sink scale sliding_window_size memory_config "
        "program_config compute_kernel_config",
        "chunked_scaled_dot_product_attention": "query key value page_table chunk_start_idx scale "
        "memory_config program_config compute_kernel_config",
        "split_query_key_value_and_split_heads": "input_tensor input_tensor_kv num_heads "
        "num_kv_heads transpose_key memory_config use_falcon7b_backend",
        "nlp_create_qkv_heads_decode": "input_tensor num_heads num_kv_heads output_tensors "
        "overlap_qk_coregrid batch_offset slice_size memory_config",
        "rotary_embedding_llama": "input_tensor cos_cache sin_cache trans_mat is_decode_mode "
        "memory_config compute_kernel_config",
        "paged_update_cache": "cache input update_idxs update_idxs_tensor share_cache page_table "
        "batch_offset compute_kernel_config mesh_coords",
        "fill_cache": "cache_tensor input_tensor batch_idx",
        "paged_fill_cache": "cache input page_table batch_idx_tensor batch_idx "
        "compute_kernel_config mesh_coords",
        "quantize": f"input_tensor scale zero_point {_QUANTIZATION}",
        "dequantize": f"input_tensor scale zero_point {_QUANTIZATION}",
        "requantize": "input_tensor in_scale in_zero_point out_scale out_zero_point "
        f"{_QUANTIZATION}",
        "embedding": "indices weight pad_token layout embeddings_type dtype memory_config",
        "dropout": "input_tensor prob scale seed use_per_device_seed memory_config",
        "rand": "shape device dtype layout memory_config from to seed",
        "arange": "start stop step dtype device memory_config layout",
        "full": "shape fill_value dtype layout device memory_config",
        "scatter": "input_tensor dim index_tensor source_tensor memory_config reduction "
        "sub_core_grid",
        "gather": "input_tensor dim index_tensor sparse_grad memory_config output sub_core_grids",
        "all_to_all_async_generic": "input_tensor in_dim out_dim persistent_output_buffer "
        "num_links memory_config topology subdevice_id cluster_axis",
        "all_to_all_combine": "input_tensor expert_mapping_tensor expert_metadata_tensor "
        "locally_reduced num_links topology memory_config axis output_shard_dim",
        "slice": "input_tensor begins ends step memory_config output_tensor pad_value",
    }.items()
}
"""Parameter names by the last part of a function's name."""

_MATMUL = "ttnn::operations::matmul"
_WORKERS = frozenset({"num_workers_per_dram_bank"})

RELEASE = Release(
    "0.70.1",
    PARAMETERS,
    absent_fields={
        f"{_MATMUL}::MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig": _WORKERS,
        "ttnn::operations::transformer::SDPAProgramConfig": frozenset({"max_k_splits"}),
    },
    l1_bases={"wormhole_b0": 103_712, "blackhole": 111_104},
)
