#pragma once

#include <cstdint>
#include <optional>

#include "ttnn/operations/core/compute_kernel/compute_kernel_config.hpp"
#include "ttnn/operations/eltwise/unary/common/unary_op_types.hpp"
#include "ttnn/operations/sliding_window/op_slicing/op_slicing.hpp"
#include "ttnn/operations/sliding_window/sliding_window.hpp"
#include "ttnn/tensor/tensor.hpp"

namespace ttnn::prim {

namespace sliding_window = ttnn::operations::sliding_window;
namespace op_slicing = ttnn::operations::op_slicing;
using Conv2dSliceConfig = op_slicing::Op2DSliceConfig;

/// Options of convolutions. Results depend on weights_dtype, activation, shard_layout and
/// output_layout; the others tune performance on hardware.
struct Conv2dConfig {
    std::optional<tt::tt_metal::DataType> weights_dtype = std::nullopt;
    std::optional<ttnn::operations::unary::UnaryWithParam> activation = std::nullopt;
    bool deallocate_activation = false;
    bool reallocate_halo_output = true;
    bool config_tensors_in_dram = false;
    uint32_t act_block_h_override = 0;
    uint32_t act_block_w_div = 1;
    bool reshard_if_not_optimal = false;
    bool override_sharding_config = false;
    std::optional<tt::tt_metal::TensorMemoryLayout> shard_layout;
    std::optional<tt::tt_metal::CoreRangeSet> core_grid = std::nullopt;
    bool transpose_shards = false;
    tt::tt_metal::Layout output_layout = tt::tt_metal::Layout::TILE;
    bool enable_act_double_buffer = false;
    bool enable_weights_double_buffer = false;
    bool full_inner_dim = false;
    std::optional<bool> enable_kernel_stride_folding = std::nullopt;
    bool enable_activation_reuse = false;
    std::optional<bool> force_split_reader = std::nullopt;
    bool override_output_sharding_config = false;
    sliding_window::PaddingMode padding_mode = sliding_window::PaddingMode::Zeros;
};

}  // namespace ttnn::prim
