#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <tuple>
#include <variant>

#include "ttcodegen/release.hpp"
#include "ttnn/operations/conv/conv2d/device/conv2d_device_operation_types.hpp"
#include "ttnn/tensor/tensor.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

using Conv1dConfig = ttnn::prim::Conv2dConfig;

using OutputLength = uint32_t;
using Conv1dResult = std::variant<
    ttnn::Tensor, std::tuple<ttnn::Tensor, OutputLength>,
    std::tuple<ttnn::Tensor, std::tuple<ttnn::Tensor, std::optional<ttnn::Tensor>>>,
    std::tuple<ttnn::Tensor, OutputLength, std::tuple<ttnn::Tensor, std::optional<ttnn::Tensor>>>>;

/// conv2d over a height of 1: input (batch, length, in_channels), weights (out_channels,
/// in_channels / groups, kernel).
Conv1dResult conv1d(
    const ttnn::Tensor& input_tensor, const ttnn::Tensor& weight_tensor, MeshDevice* device,
    uint32_t in_channels, uint32_t out_channels, uint32_t batch_size, uint32_t input_length,
    uint32_t kernel_size, uint32_t stride = 1,
    std::variant<std::array<uint32_t, 2>, uint32_t> padding = uint32_t{0}, uint32_t dilation = 1,
    uint32_t groups = 1, const std::optional<const DataType>& dtype = std::nullopt,
    const std::optional<const ttnn::Tensor>& bias_tensor = std::nullopt,
    const std::optional<const Conv1dConfig>& conv_config = std::nullopt,
    const std::optional<const DeviceComputeKernelConfig>& compute_config = std::nullopt,
    const std::optional<const MemoryConfig>& memory_config = std::nullopt,
    TTCODEGEN_SINCE_8101(const std::optional<const ttnn::operations::op_slicing::Op2DSliceConfig>&
                             slice_config = std::nullopt, ) bool return_output_dim = true,
    bool return_weights_and_bias = true);

}  // namespace ttnn
