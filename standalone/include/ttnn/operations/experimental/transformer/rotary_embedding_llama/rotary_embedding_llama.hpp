#pragma once

#include <optional>

#include "ttnn/operations/core/compute_kernel/compute_kernel_config.hpp"
#include "ttnn/tensor/tensor.hpp"
#include "ttnn/types.hpp"

namespace ttnn::experimental {

/// x * cos + (x T) * sin, where T is `trans_mat`, applied to each 32 columns. x is (1, H, S, D), or
/// in decode mode (1, B, H, D) with one row of cos and sin per user.
ttnn::Tensor rotary_embedding_llama(
    const Tensor& input_tensor, const Tensor& cos_cache, const Tensor& sin_cache,
    const Tensor& trans_mat, bool is_decode_mode = false,
    const std::optional<MemoryConfig>& memory_config = std::nullopt,
    std::optional<const ttnn::DeviceComputeKernelConfig> compute_kernel_config = std::nullopt);

}  // namespace ttnn::experimental
