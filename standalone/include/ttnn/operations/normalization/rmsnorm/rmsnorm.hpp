#pragma once

#include <optional>

#include "ttnn/operations/core/compute_kernel/compute_kernel_config.hpp"
#include "ttnn/operations/normalization/layernorm/device/layernorm_types.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Divides the last dimension of input (+ residual) by its root mean square, then * weight + bias.
Tensor rms_norm(
    const Tensor& input_tensor, float epsilon = 1e-12,
    const std::optional<const Tensor>& weight = std::nullopt,
    const std::optional<const Tensor>& bias = std::nullopt,
    const std::optional<const Tensor>& residual_input_tensor = std::nullopt,
    const std::optional<MemoryConfig>& memory_config = std::nullopt,
    const std::optional<const prim::LayerNormProgramConfig>& program_config = std::nullopt,
    std::optional<const DeviceComputeKernelConfig> compute_kernel_config = std::nullopt);

}  // namespace ttnn
