#pragma once

#include <cstdint>
#include <optional>

#include "ttnn/operations/core/compute_kernel/compute_kernel_config.hpp"
#include "ttnn/tensor/tensor.hpp"
#include "ttnn/types.hpp"

namespace ttnn::experimental {

/// x * cos + rotate_half(x) * sin for x (B, H, S, D) and caches (1, 1, S', D), row by row, or, with
/// `token_index`, with that row for all. The sequence is padded to 32 in the result.
ttnn::Tensor rotary_embedding(
    const Tensor& input_tensor, const Tensor& cos_cache, const Tensor& sin_cache,
    std::optional<uint32_t> token_index = std::nullopt,
    const std::optional<MemoryConfig>& memory_config = std::nullopt,
    std::optional<const ttnn::DeviceComputeKernelConfig> compute_kernel_config = std::nullopt);

}  // namespace ttnn::experimental
