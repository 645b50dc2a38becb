#pragma once

#include <optional>

#include "ttnn/operations/core/compute_kernel/compute_kernel_config.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Normalizes each channel of an (N, C, H, W) tensor: with the running statistics or, in training,
/// with those of the batch, which then also update the running ones in place. Statistics, weight
/// and bias are (N or 1, C, 1, 1).
Tensor batch_norm(
    const Tensor& input, std::optional<Tensor> running_mean = std::nullopt,
    std::optional<Tensor> running_var = std::nullopt, bool training = false, float eps = 1e-05,
    float momentum = 0.1, const std::optional<Tensor>& weight = std::nullopt,
    const std::optional<Tensor>& bias = std::nullopt,
    const std::optional<Tensor>& output = std::nullopt,
    const std::optional<MemoryConfig>& memory_config = std::nullopt,
    const std::optional<DeviceComputeKernelConfig>& compute_kernel_config = std::nullopt);

}  // namespace ttnn
