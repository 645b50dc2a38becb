#pragma once

#include <cstdint>

#include "ttnn/tensor/tensor.hpp"
#include "ttnn/types.hpp"

namespace ttnn::operations::experimental::conv3d {

/// Rearranges weights (out_channels, in_channels / groups, kT, kH, kW) to the matrix operand of
/// conv3d: rows in the order (channel block, kT, kH, kW, channel within the block), channels padded
/// to `alignment`.
Tensor prepare_conv3d_weights(const ttnn::Tensor& weights, uint32_t groups, uint32_t C_in_block = 0,
                              uint32_t alignment = 32, MeshDevice* device = nullptr);

}  // namespace ttnn::operations::experimental::conv3d
