#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "ttcodegen/release.hpp"
#include "ttnn/operations/core/compute_kernel/compute_kernel_config.hpp"
#include "ttnn/types.hpp"

// KV caches written in place; the result shares the cache's storage. With a page table (B, blocks
// per user) the cache is (blocks, H, block size, D), without one (B, H, S, D).
namespace ttnn::experimental {

/// Writes one token per user: input (1, B, H padded to 32, D), height-sharded with one user per
/// core, to positions `update_idxs` or `update_idxs_tensor`; -1 skips the user.
ttnn::Tensor paged_update_cache(
    const Tensor& cache_tensor, const Tensor& input_tensor,
    const std::vector<uint32_t>& update_idxs, const std::optional<const Tensor>& update_idxs_tensor,
    std::optional<bool> share_cache, const std::optional<const Tensor>& page_table,
    uint32_t batch_offset,
    std::optional<const ttnn::DeviceComputeKernelConfig> compute_kernel_config,
    const std::optional<const std::set<ttnn::MeshCoordinate>>& mesh_coords TTCODEGEN_SINCE_8101(
        , std::optional<uint32_t> block_size, std::optional<uint32_t> num_kv_heads,
        std::optional<uint32_t> cache_position_modulo));

/// paged_update_cache for keys and values at once.
std::tuple<ttnn::Tensor, ttnn::Tensor> paged_fused_update_cache(
    const Tensor& cache_tensor1, const Tensor& input_tensor1, const Tensor& cache_tensor2,
    const Tensor& input_tensor2, const std::vector<uint32_t>& update_idxs,
    const std::optional<const Tensor>& update_idxs_tensor, std::optional<bool> share_cache,
    const std::optional<const Tensor>& page_table, uint32_t batch_offset,
    std::optional<const ttnn::DeviceComputeKernelConfig> compute_kernel_config,
    const std::optional<const std::set<ttnn::MeshCoordinate>>& mesh_coords);

/// Writes the first tokens of user `batch_idx` (or the one in `batch_idx_tensor`): input (1, H, S,
/// D).
ttnn::Tensor paged_fill_cache(
    const Tensor& cache_tensor, const Tensor& input_tensor, const Tensor& page_table,
    const std::optional<const Tensor>& batch_idx_tensor, uint32_t batch_idx,
    std::optional<const ttnn::DeviceComputeKernelConfig> compute_kernel_config,
    const std::optional<const std::set<ttnn::MeshCoordinate>>& mesh_coords TTCODEGEN_SINCE_8101(
        , std::optional<uint32_t> block_size, std::optional<uint32_t> cache_position_modulo,
        const std::optional<const Tensor>& valid_seq_len_tensor));

}  // namespace ttnn::experimental
