#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <tuple>
#include <variant>

#include "ttnn/distributed/types.hpp"
#include "ttnn/operations/conv/conv2d/device/conv2d_device_operation_types.hpp"
#include "ttnn/operations/conv/conv_types.hpp"
#include "ttnn/operations/core/compute_kernel/compute_kernel_config.hpp"
#include "ttnn/tensor/tensor.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

using OutputHeight = uint32_t;
using OutputWidth = uint32_t;
using Conv2dResult =
    std::tuple<ttnn::Tensor, OutputHeight, OutputWidth, ttnn::Tensor, std::optional<ttnn::Tensor>>;
using Conv2dResultWithOptions =
    std::variant<ttnn::Tensor, std::tuple<ttnn::Tensor, std::tuple<OutputHeight, OutputWidth>>,
                 std::tuple<ttnn::Tensor, std::tuple<ttnn::Tensor, std::optional<ttnn::Tensor>>>,
                 std::tuple<ttnn::Tensor, std::tuple<OutputHeight, OutputWidth>,
                            std::tuple<ttnn::Tensor, std::optional<ttnn::Tensor>>>>;

using ttnn::prim::Conv2dConfig;
using ttnn::prim::Conv2dSliceConfig;

/// Convolution of NHWC pixels (any shape with batch * height * width * in_channels elements) with
/// weights (out_channels, in_channels / groups, kernel height, kernel width), row-major, and a bias
/// (1, 1, 1, out_channels). The output is (1, 1, batch * output height * output width,
/// out_channels). padding is (height, width) or (top, bottom, left, right). With return_output_dim
/// and return_weights_and_bias the result is the tuple of conv_types.hpp.
Conv2dResultWithOptions conv2d(
    const ttnn::Tensor& input_tensor, const ttnn::Tensor& weight_tensor, MeshDevice* device,
    uint32_t in_channels, uint32_t out_channels, uint32_t batch_size, uint32_t input_height,
    uint32_t input_width, std::array<uint32_t, 2> kernel_size,
    std::array<uint32_t, 2> stride = std::array<uint32_t, 2>{1, 1},
    std::variant<std::array<uint32_t, 2>, std::array<uint32_t, 4>> padding =
        std::array<uint32_t, 2>{0, 0},
    std::array<uint32_t, 2> dilation = std::array<uint32_t, 2>{1, 1}, uint32_t groups = 1,
    const std::optional<const DataType>& dtype = std::nullopt,
    const std::optional<const ttnn::Tensor>& bias_tensor = std::nullopt,
    const std::optional<const Conv2dConfig>& conv_config_ = std::nullopt,
    const std::optional<const DeviceComputeKernelConfig>& compute_config_ = std::nullopt,
    const std::optional<const MemoryConfig>& memory_config_ = std::nullopt,
    const std::optional<const Conv2dSliceConfig>& dram_slice_config_ = std::nullopt,
    bool return_output_dim = false, bool return_weights_and_bias = false);

}  // namespace ttnn
