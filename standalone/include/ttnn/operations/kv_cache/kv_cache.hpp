#pragma once

#include <cstdint>
#include <optional>

#include "ttcodegen/release.hpp"
#include "ttnn/operations/core/compute_kernel/compute_kernel_config.hpp"
#include "ttnn/types.hpp"

// KV caches (B, H, S, D), written in place; the result shares the cache's storage.
namespace ttnn {

/// Older name of fill_cache.
ttnn::Tensor fill_cache_for_user_(const ttnn::Tensor& cache, const ttnn::Tensor& input,
                                  uint32_t batch_index TTCODEGEN_SINCE_8101(,
                                                                            uint32_t update_index));

/// Older name of update_cache.
ttnn::Tensor update_cache_for_token_(
    const ttnn::Tensor& cache, const ttnn::Tensor& input, uint32_t update_index,
    uint32_t batch_offset,
    std::optional<const DeviceComputeKernelConfig> compute_kernel_config = std::nullopt);

/// Writes one token for each user of the cache: input (1, H, tokens, D), starting at token
/// `batch_offset`, to position `update_idx`.
ttnn::Tensor update_cache(
    const ttnn::Tensor& cache, const ttnn::Tensor& input, uint32_t update_idx,
    uint32_t batch_offset = 0,
    std::optional<const DeviceComputeKernelConfig> compute_kernel_config = std::nullopt);

/// Writes the first tokens of one user: input (1, H, S', D) to user `batch_idx`, starting at
/// position 0.
ttnn::Tensor fill_cache(const ttnn::Tensor& cache_tensor, const ttnn::Tensor& input_tensor,
                        uint32_t batch_idx TTCODEGEN_SINCE_8101(, uint32_t update_idx));

}  // namespace ttnn
