#pragma once

#include <optional>

#include "ttcodegen/release.hpp"
#include "ttnn/operations/core/compute_kernel/compute_kernel_config.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Normalizes groups of channels of an (N, 1, H*W, C) tensor; weight and bias are (1, 1, C/32, 32),
/// row-major.
Tensor group_norm(const Tensor& input_tensor, int num_groups, float epsilon,
                  const std::optional<Tensor>& input_mask = std::nullopt,
                  const std::optional<Tensor>& weight = std::nullopt,
                  const std::optional<Tensor>& bias = std::nullopt,
                  TTCODEGEN_BEFORE_8101(const std::optional<Tensor>& reciprocals = std::nullopt, )
                      const std::optional<MemoryConfig>& memory_config = std::nullopt,
                  std::optional<DataType> dtype = std::nullopt,
                  std::optional<CoreGrid> core_grid = std::nullopt,
                  std::optional<bool> inplace = std::nullopt,
                  std::optional<Layout> output_layout = std::nullopt,
                  std::optional<int> num_out_blocks = std::nullopt,
                  std::optional<DeviceComputeKernelConfig> compute_kernel_config = std::nullopt,
                  const std::optional<Tensor>& negative_mask = std::nullopt,
                  bool use_welford = false);

}  // namespace ttnn
