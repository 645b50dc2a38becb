#pragma once

#include <array>
#include <cstdint>
#include <tt-metalium/core_coord.hpp>

#include "ttnn/tensor/tensor.hpp"

namespace ttnn::experimental::prim {

/// Options of conv3d. C_in_block must be the one that the weights were prepared with; the block
/// sizes tune performance on hardware.
struct Conv3dConfig {
    Conv3dConfig(tt::tt_metal::DataType weights_dtype_ = tt::tt_metal::DataType::BFLOAT16,
                 tt::tt_metal::Layout output_layout_ = tt::tt_metal::Layout::ROW_MAJOR,
                 uint32_t T_out_block_ = 1, uint32_t W_out_block_ = 1, uint32_t H_out_block_ = 1,
                 uint32_t C_out_block_ = 0, uint32_t C_in_block_ = 0,
                 std::array<uint32_t, 3> dilation_ = {1, 1, 1}, uint32_t alignment_ = 32,
                 tt::tt_metal::CoreCoord compute_with_storage_grid_size_ = {1, 1})
        : weights_dtype(weights_dtype_),
          output_layout(output_layout_),
          T_out_block(T_out_block_),
          W_out_block(W_out_block_),
          H_out_block(H_out_block_),
          C_out_block(C_out_block_),
          C_in_block(C_in_block_),
          dilation(dilation_),
          alignment(alignment_),
          compute_with_storage_grid_size(compute_with_storage_grid_size_) {}

    tt::tt_metal::DataType weights_dtype;
    tt::tt_metal::Layout output_layout;
    uint32_t T_out_block;
    uint32_t W_out_block;
    uint32_t H_out_block;
    uint32_t C_out_block;
    uint32_t C_in_block;
    std::array<uint32_t, 3> dilation;
    uint32_t alignment;
    tt::tt_metal::CoreCoord compute_with_storage_grid_size;
};

}  // namespace ttnn::experimental::prim
