#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <tuple>
#include <variant>

#include "ttnn/operations/conv/conv2d/device/conv2d_device_operation_types.hpp"
#include "ttnn/operations/conv/conv_types.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

using ttnn::prim::Conv2dConfig;
using ttnn::prim::Conv2dSliceConfig;

using OutputHeight = uint32_t;
using OutputWidth = uint32_t;
using ConvTranspose2dResult =
    std::tuple<ttnn::Tensor, OutputHeight, OutputWidth, ttnn::Tensor, std::optional<ttnn::Tensor>>;
using ConvTranspose2dResultWithOptions =
    std::variant<ttnn::Tensor, std::tuple<ttnn::Tensor, std::tuple<OutputHeight, OutputWidth>>,
                 std::tuple<ttnn::Tensor, std::tuple<ttnn::Tensor, std::optional<ttnn::Tensor>>>,
                 std::tuple<ttnn::Tensor, std::tuple<OutputHeight, OutputWidth>,
                            std::tuple<ttnn::Tensor, std::optional<ttnn::Tensor>>>>;

/// Transposed convolution: weights are (in_channels, out_channels / groups, kernel height, kernel
/// width), the rest as in conv2d. `mirror_kernel` false means that the kernel is already rotated by
/// 180 degrees.
ConvTranspose2dResultWithOptions conv_transpose2d(
    const ttnn::Tensor& input_tensor, const ttnn::Tensor& weight_tensor, MeshDevice* device,
    uint32_t in_channels, uint32_t out_channels, uint32_t batch_size, uint32_t input_height,
    uint32_t input_width, std::array<uint32_t, 2> kernel_size,
    std::array<uint32_t, 2> stride = std::array<uint32_t, 2>{1, 1},
    std::variant<std::array<uint32_t, 2>, std::array<uint32_t, 4>> padding =
        std::array<uint32_t, 4>{0, 0, 0, 0},
    std::array<uint32_t, 2> output_padding = std::array<uint32_t, 2>{0, 0},
    std::array<uint32_t, 2> dilation = std::array<uint32_t, 2>{1, 1}, uint32_t groups = 1,
    const std::optional<const DataType>& dtype = std::nullopt,
    const std::optional<const ttnn::Tensor>& bias_tensor = std::nullopt,
    const std::optional<const Conv2dConfig>& conv_config_ = std::nullopt,
    const std::optional<const DeviceComputeKernelConfig>& compute_config_ = std::nullopt,
    const std::optional<const MemoryConfig>& memory_config = std::nullopt,
    const std::optional<const Conv2dSliceConfig>& dram_slice_config_ = std::nullopt,
    bool mirror_kernel = true, bool return_output_dim = false,
    bool return_weights_and_bias = false);

}  // namespace ttnn
