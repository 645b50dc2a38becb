"""tt-metal 0.81.1: differences to 0.70.1.

Types and order of parameters are those of the functions that `ttnn==0.81.1` exports; names and
defaults are those of its bindings and of the headers in its wheel. Most functions only gained
trailing parameters, which calls leave out: they have no row.
"""

from __future__ import annotations

from ttcodegen.systems.releases.release import (
    CallChange,
    KernelChange,
    Release,
    changed,
    moved,
    parameters,
)
from ttcodegen.systems.releases.tt_metal_0_70_1 import PARAMETERS

_API = "api/compute/"
_FORMATS = _API + "reconfig_data_format.h"
_TRANSPOSE = _API + "transpose.h"
_PRINTING = "blocks/formatted_printing.hpp"
_SHIFT = _API + "eltwise_unary/shift.h"
_TOPK = _API + "topk.h"
_PRODUCT = "in0_cb in1_cb transpose=0"
_BLOCK = f"{_PRODUCT} ct_dim=1 rt_dim=1 kt_dim=1"


def _start(arguments: str, order: str = "") -> KernelChange:
    """Hardware start-up for some circular buffers."""
    template = f"!=SrcOrder::{order}" if order else ""
    header = _API + "compute_kernel_hw_startup.h"
    return KernelChange("compute_kernel_hw_startup", header, arguments, template)


def _formats(arguments: str) -> KernelChange:
    """Reconfiguration of the data format of source register A."""
    return KernelChange("reconfig_data_format_srca", _FORMATS, arguments, "")


def _broadcasts(verb: str) -> dict[str, KernelChange]:
    """Initialisations of tile add, sub or mul."""
    return {
        f"{verb}_tiles_init": KernelChange(f"{verb}_init"),
        f"{verb}_bcast_init": KernelChange(
            "bcast_init", arguments="in0_cb in1_cb", before=_start("in0_cb in1_cb out_cb")
        ),
    }


KERNELS: dict[str, KernelChange] = {
    "binary_op_init_common": _start("in0_cb in1_cb out_cb"),
    "copy_tile_init": KernelChange("copy_init"),
    "copy_tile_to_dst_init_short": KernelChange("copy_init"),
    "copy_tile_to_dst_init_short_with_dt": KernelChange(
        "copy_init", arguments="new_cb transpose=0", before=_formats("old_cb new_cb")
    ),
    "copy_block_matmul_partials": KernelChange("copy_block"),
    "pack_tile_block": KernelChange("pack_block"),
    "pack_reconfig_data_format": KernelChange(header=_FORMATS),
    "transpose_wh_init": KernelChange(
        "transpose_init", _TRANSPOSE, "cbIn", before=_start("cbIn cbOut")
    ),
    "transpose_wh_init_short": KernelChange("transpose_init", _TRANSPOSE),
    "transpose_wh_tile": KernelChange("transpose_tile", _TRANSPOSE),
    "mm_init": KernelChange(
        "matmul_init", arguments=_PRODUCT, before=_start("in0_cb in1_cb out_cb", "Reverse")
    ),
    "mm_init_short": KernelChange("matmul_init"),
    "mm_init_short_with_dt": KernelChange(
        "matmul_init", arguments=_PRODUCT, before=_formats("old_srca_cb in1_cb")
    ),
    "mm_block_init": KernelChange(
        "matmul_block_init", arguments=_BLOCK, before=_start("in0_cb in1_cb out_cb", "Reverse")
    ),
    "mm_block_init_short": KernelChange("matmul_block_init"),
    "mm_block_init_short_with_dt": KernelChange(
        "matmul_block_init", arguments=_BLOCK, before=_formats("old_in1_cb in1_cb")
    ),
    **_broadcasts("add"),
    **_broadcasts("sub"),
    **_broadcasts("mul"),
    "add_bcast_rows_init_short": KernelChange("add_bcast_rows_init"),
    "add_bcast_cols_init_short": KernelChange("add_bcast_cols_init"),
    "add_bcast_scalar_init_short": KernelChange("add_bcast_scalar_init"),
    "sub_bcast_cols_init_short": KernelChange("sub_bcast_cols_init"),
    "sub_tiles_bcast_scalar_init_short": KernelChange("sub_bcast_scalar_init"),
    "mul_bcast_rows_init_short": KernelChange("mul_bcast_rows_init"),
    "mul_bcast_cols_init_short": KernelChange("mul_bcast_cols_init"),
    "mul_tiles_bcast_scalar_init_short": KernelChange("mul_bcast_scalar_init"),
    "unary_bcast_init": KernelChange(arguments="in_cb", before=_start("in_cb out_cb")),
    "blocks.unary_bcast_init_short": KernelChange("unary_bcast_init", _API + "bcast.h"),
    "blocks.print_tile": KernelChange(header=_PRINTING),
    "blocks.print_row": KernelChange(header=_PRINTING),
    "left_shift_tile_init": KernelChange(header=_SHIFT),
    "left_shift_tile": KernelChange(header=_SHIFT, template="!=DataFormat::Int32"),
    "right_shift_tile_init": KernelChange(header=_SHIFT),
    "right_shift_tile": KernelChange(header=_SHIFT, template="!=DataFormat::Int32"),
    # The initialisations of these take the divisor.
    "fmod_tile": KernelChange(arguments="dst_index"),
    "remainder_tile": KernelChange(arguments="dst_index"),
    # The precision of these follows the destination registers.
    "binary_dest_reuse_tiles_init": KernelChange(
        "{eltwise_binary_type}_reuse_dest_init", template="reuse_type"
    ),
    "binary_dest_reuse_tiles": KernelChange(
        "{eltwise_binary_type}_reuse_dest_tiles", template="reuse_type"
    ),
    "pack_relu_config": KernelChange(conversion="ReluConfig::from_packed"),
    "reduce_init": KernelChange(template="reduce_type reduce_dim"),
    "reduce_tile": KernelChange(template="reduce_type reduce_dim"),
    "reduce_uninit": KernelChange(template=""),
    "recip_tile_init": KernelChange(template=""),
    "recip_tile": KernelChange(template=""),
    "rsqrt_tile_init": KernelChange(template=""),
    "rsqrt_tile": KernelChange(template=""),
    "topk_tile_init": KernelChange(header=_TOPK),
    "topk_local_sort": KernelChange(header=_TOPK),
    "topk_merge": KernelChange(header=_TOPK),
    "topk_rebuild": KernelChange(header=_TOPK),
}

_GELU = "ttnn::operations::unary::GeluVariant"
_LATER_ALL_GATHER = (
    "input_tensor dim cluster_axis memory_config persistent_output_tensor subdevice_id "
    "sub_core_grid num_links topology"
)

CALLS: dict[str, CallChange] = {
    # The flag use_multicore was removed: the whole grid always computes.
    "ttnn::argmax": changed(
        PARAMETERS["argmax"], "input_tensor dim keepdim sub_core_grids memory_config"
    ),
    "ttnn::all_gather": changed(
        "input_tensor dim cluster_axis subdevice_id memory_config persistent_output_tensor "
        "num_links topology",
        _LATER_ALL_GATHER,
    ),
    # The parameter `reciprocals` was removed: they are computed.
    "ttnn::group_norm": changed(
        PARAMETERS["group_norm"],
        " ".join(name for name in PARAMETERS["group_norm"] if name != "reciprocals"),
    ),
    "ttnn::experimental::nlp_create_qkv_heads": changed(
        "input input_kv num_heads num_kv_heads transpose_k_heads memory_config output_tensors",
        "input input_kv num_heads num_kv_heads transpose_k_heads kv_tied!=false memory_config "
        "output_tensors",
    ),
    "ttnn::experimental::paged_update_cache": changed(
        PARAMETERS["paged_update_cache"],
        f"{' '.join(PARAMETERS['paged_update_cache'])} block_size!=std::nullopt "
        "num_kv_heads!=std::nullopt cache_position_modulo!=std::nullopt",
    ),
    "ttnn::experimental::paged_fill_cache": changed(
        PARAMETERS["paged_fill_cache"],
        f"{' '.join(PARAMETERS['paged_fill_cache'])} block_size!=std::nullopt "
        "cache_position_modulo!=std::nullopt valid_seq_len_tensor!=std::nullopt",
    ),
    "ttnn::fill_cache": changed(
        PARAMETERS["fill_cache"], f"{' '.join(PARAMETERS['fill_cache'])} update_idx!=0"
    ),
    # No longer experimental: the variant is an enumeration, and the result a vector of the
    # gradients of all operands.
    "ttnn::experimental::gelu_bw": CallChange(
        ("grad_tensor", "input_tensor", "variant"),
        parameters(f"grad_tensor input_tensor variant!={_GELU}::ACCURATE"),
        values={"variant": {'"none"': f"{_GELU}::ACCURATE", '"tanh"': f"{_GELU}::TANH"}},
        callee="ttnn::gelu_bw",
        is_first_option=True,
    ),
    # Moved to another namespace together with the tensors.
    "tt::tt_metal::dump_tensor_flatbuffer": moved(
        "ttnn::dump_tensor_flatbuffer", "file_name tensor"
    ),
    "tt::tt_metal::load_tensor_flatbuffer": moved(
        "ttnn::load_tensor_flatbuffer", "file_name device"
    ),
}

RELEASE = Release(
    "0.81.1",
    PARAMETERS,
    calls=CALLS,
    kernels=KERNELS,
    formats_prints=True,
    names={
        "using Tensor = tt::tt_metal::Tensor;": "using Tensor = ttnn::Tensor;",
        # Found by argument-dependent lookup: it moved together with the tensors.
        "tt::tt_metal::copy_to_device(": "copy_to_device(",
    },
    headers={
        "ttnn/operations/experimental/unary_backward/gelu_backward/gelu_backward.hpp": (
            "ttnn/operations/eltwise/unary_backward/unary_backward.hpp"
        ),
    },
    # Measured on its mocked device: scalars run the program of two tensors, which have one type.
    numbers={"ttnn.where": {"first": "true_value", "second": "false_value"}},
    wide_indices=frozenset({"ttnn.sort"}),
    l1_bases={"wormhole_b0": 105_824, "blackhole": 111_744},
)
