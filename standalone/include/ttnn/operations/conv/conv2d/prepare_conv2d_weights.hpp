#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "ttnn/operations/conv/conv2d/conv2d.hpp"

namespace ttnn::operations::conv::conv2d {

/// The weights of a conv2d with these arguments as a matrix in tiles on the device, (1, 1, kernel
/// height * kernel width * in_channels, out_channels), with zeros for the channels of other groups.
/// conv2d takes it in place of host weights, and need not prepare those in each call.
Tensor prepare_conv_weights(const ttnn::Tensor& weight_tensor,
                            const ttnn::MemoryConfig& input_memory_config, Layout input_layout,
                            const std::string& weights_format, uint32_t in_channels,
                            uint32_t out_channels, uint32_t batch_size, uint32_t input_height,
                            uint32_t input_width, std::array<uint32_t, 2> kernel_size,
                            std::array<uint32_t, 2> stride,
                            std::variant<std::array<uint32_t, 2>, std::array<uint32_t, 4>> padding,
                            std::array<uint32_t, 2> dilation, bool has_bias, uint32_t groups,
                            MeshDevice* device, DataType input_dtype,
                            const std::optional<const DataType>& output_dtype,
                            const std::optional<const Conv2dConfig>& conv_config_,
                            const std::optional<const DeviceComputeKernelConfig>& compute_config_,
                            const std::optional<const Conv2dSliceConfig>& dram_slice_config_);

/// The bias (1, 1, 1, out_channels) of such a convolution in tiles on the device, of the data type
/// that conv_config_ says for the weights.
Tensor prepare_conv_bias(
    const ttnn::Tensor& bias_tensor, const ttnn::MemoryConfig& input_memory_config,
    Layout input_layout, uint32_t in_channels, uint32_t out_channels, uint32_t batch_size,
    uint32_t input_height, uint32_t input_width, std::array<uint32_t, 2> kernel_size,
    std::array<uint32_t, 2> stride,
    std::variant<std::array<uint32_t, 2>, std::array<uint32_t, 4>> padding,
    std::array<uint32_t, 2> dilation, uint32_t groups, MeshDevice* device, DataType input_dtype,
    const std::optional<const DataType>& output_dtype,
    const std::optional<const Conv2dConfig>& conv_config_,
    const std::optional<const DeviceComputeKernelConfig>& compute_config_,
    const std::optional<const Conv2dSliceConfig>& dram_slice_config_ = std::nullopt);

}  // namespace ttnn::operations::conv::conv2d
