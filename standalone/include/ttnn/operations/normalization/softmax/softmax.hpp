#pragma once

#include <optional>

#include "device/softmax_operation_types.hpp"
#include "ttnn/operations/core/compute_kernel/compute_kernel_config.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// exp(x) / sum(exp(x)) along `dim`; `numeric_stable` subtracts the maximum first.
Tensor softmax(const Tensor& input_tensor, int dim,
               const std::optional<MemoryConfig>& memory_config = std::nullopt,
               std::optional<const DeviceComputeKernelConfig> compute_kernel_config = std::nullopt,
               bool numeric_stable = true);

/// softmax(scale * x + mask) along the last dimension.
Tensor scale_mask_softmax(
    const Tensor& input_tensor, std::optional<float> scale = std::nullopt,
    const std::optional<const Tensor>& mask = std::nullopt,
    const std::optional<MemoryConfig>& memory_config = std::nullopt, bool is_causal_mask = false,
    std::optional<const DeviceComputeKernelConfig> compute_kernel_config = std::nullopt,
    bool numeric_stable = true);

/// softmax into the input's own storage: rank 4, last dimension.
Tensor softmax_in_place(
    const Tensor& input_tensor, int dim = -1,
    const SoftmaxProgramConfig& program_config = SoftmaxDefaultProgramConfig{},
    std::optional<const DeviceComputeKernelConfig> compute_kernel_config = std::nullopt,
    bool numeric_stable = true);

/// scale_mask_softmax into the input's own storage.
Tensor scale_mask_softmax_in_place(
    const Tensor& input_tensor, std::optional<float> scale = std::nullopt,
    const std::optional<const Tensor>& mask = std::nullopt,
    const SoftmaxProgramConfig& program_config = SoftmaxDefaultProgramConfig{},
    bool is_causal_mask = false,
    std::optional<const DeviceComputeKernelConfig> compute_kernel_config = std::nullopt,
    bool numeric_stable = false);

}  // namespace ttnn
