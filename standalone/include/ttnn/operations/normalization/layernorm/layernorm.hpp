#pragma once

#include <optional>

#include "device/layernorm_types.hpp"
#include "ttnn/operations/core/compute_kernel/compute_kernel_config.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Normalizes the last dimension of input (+ residual) to zero mean and unit variance, then *
/// weight + bias.
Tensor layer_norm(
    const Tensor& input_tensor, float epsilon = 1e-12,
    const std::optional<const Tensor>& weight = std::nullopt,
    const std::optional<const Tensor>& bias = std::nullopt,
    const std::optional<const Tensor>& residual_input_tensor = std::nullopt,
    const std::optional<MemoryConfig>& memory_config = std::nullopt,
    const std::optional<const prim::LayerNormProgramConfig>& program_config = std::nullopt,
    std::optional<const DeviceComputeKernelConfig> compute_kernel_config = std::nullopt,
    const std::optional<const Tensor>& recip_tensor = std::nullopt);

}  // namespace ttnn
