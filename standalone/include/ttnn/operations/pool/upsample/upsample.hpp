#pragma once

#include <array>
#include <optional>
#include <string>
#include <variant>

#include "ttnn/operations/core/compute_kernel/compute_kernel_config.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

namespace operations::upsample {

/// Upsamples an image (N, H, W, C) by `scale_factor`, one or (height, width); "nearest" or
/// "bilinear".
ttnn::Tensor upsample(
    const ttnn::Tensor& input_tensor,
    std::variant<int, std::array<int, 2>, float, std::array<float, 2>> scale_factor,
    const std::string& mode = std::string("nearest"),
    const std::optional<MemoryConfig>& output_mem_config = std::nullopt,
    const std::optional<DeviceComputeKernelConfig>& compute_kernel_config = std::nullopt);

}  // namespace operations::upsample

using ttnn::operations::upsample::upsample;

}  // namespace ttnn
