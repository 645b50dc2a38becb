"""tt-metal 0.81.1, where it differs from 0.70.1.

Types and order of parameters are those of the functions that `ttnn==0.81.1` exports; names and
defaults those of its bindings, and of the headers that the wheel has. Most functions only gained
parameters at the end, which calls leave out: they have no row.
"""

from __future__ import annotations

from ttcodegen.systems.releases.kernels_0_81_1 import ABSENT, KERNELS
from ttcodegen.systems.releases.release import (
    CallChange,
    Release,
    changed,
    moved,
    parameters,
)
from ttcodegen.systems.releases.tt_metal_0_70_1 import PARAMETERS

_GELU = "ttnn::operations::unary::GeluVariant"
_LATER_ALL_GATHER = (
    "input_tensor dim cluster_axis memory_config persistent_output_tensor subdevice_id "
    "sub_core_grid num_links topology"
)

CALLS: dict[str, CallChange] = {
    # The whole grid computes anyway; the flag went.
    "ttnn::argmax": changed(
        PARAMETERS["argmax"], "input_tensor dim keepdim sub_core_grids memory_config"
    ),
    "ttnn::all_gather": changed(
        "input_tensor dim cluster_axis subdevice_id memory_config persistent_output_tensor "
        "num_links topology",
        _LATER_ALL_GATHER,
    ),
    # What reciprocals were given for is computed.
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
    # It is no experiment any more, its slope is named by an enumeration, and it gives the gradient
    # of each operand that has one.
    "ttnn::experimental::gelu_bw": CallChange(
        ("grad_tensor", "input_tensor", "variant"),
        parameters(f"grad_tensor input_tensor variant!={_GELU}::ACCURATE"),
        values={"variant": {'"none"': f"{_GELU}::ACCURATE", '"tanh"': f"{_GELU}::TANH"}},
        callee="ttnn::gelu_bw",
        is_first_option=True,
    ),
    # They moved along with the tensors.
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
    absent_kernels=ABSENT,
    formats_prints=True,
    names={
        "using Tensor = tt::tt_metal::Tensor;": "using Tensor = ttnn::Tensor;",
        # Found by its arguments: it moved along with the tensors.
        "tt::tt_metal::copy_to_device(": "copy_to_device(",
    },
    headers={
        "ttnn/operations/experimental/unary_backward/gelu_backward/gelu_backward.hpp": (
            "ttnn/operations/eltwise/unary_backward/unary_backward.hpp"
        ),
    },
    # Measured on its mocked device: numbers go to programs of two tensors, which have one type.
    numbers={"ttnn.where": {"first": "true_value", "second": "false_value"}},
    wide_indices=frozenset({"ttnn.sort"}),
)
