#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ttcodegen/release.hpp"
#include "ttnn/operations/core/compute_kernel/compute_kernel_config.hpp"
#include "ttnn/operations/transformer/sdpa_config.hpp"
#include "ttnn/types.hpp"

namespace ttnn::transformer {

/// Attention of one query token for each user: Q (1, B, H, D) over caches K, V (B, Hkv, S, D), up
/// to and including position cur_pos (a list or a tensor, -1 skips the user), or, not causal, under
/// a mask (B, 1, H, S).
ttnn::Tensor scaled_dot_product_attention_decode(
    const ttnn::Tensor& input_tensor_q, const ttnn::Tensor& input_tensor_k,
    const ttnn::Tensor& input_tensor_v, bool is_causal = true,
    const std::optional<const Tensor>& attn_mask = std::nullopt,
    const std::vector<uint32_t>& cur_pos = std::vector<uint32_t>(),
    const std::optional<const Tensor>& cur_pos_tensor = std::nullopt,
    const std::optional<const Tensor>& attention_sink = std::nullopt,
    std::optional<float> scale = std::nullopt,
    std::optional<uint32_t> sliding_window_size = std::nullopt,
    const std::optional<MemoryConfig>& memory_config = std::nullopt,
    std::optional<operations::transformer::SDPAProgramConfig> program_config = std::nullopt,
    std::optional<DeviceComputeKernelConfig> compute_kernel_config = std::nullopt,
    std::optional<bool> share_cache = std::nullopt);

/// The same over paged caches (blocks, Hkv, block size, D), addressed by `page_table_tensor` (B,
/// blocks per user).
ttnn::Tensor paged_scaled_dot_product_attention_decode(
    const ttnn::Tensor& input_tensor_q, const ttnn::Tensor& input_tensor_k,
    const ttnn::Tensor& input_tensor_v, const ttnn::Tensor& page_table_tensor,
    bool is_causal = true, const std::optional<const Tensor>& attn_mask = std::nullopt,
    const std::optional<const Tensor>& cur_pos_tensor = std::nullopt,
    const std::optional<const Tensor>& attention_sink = std::nullopt,
    std::optional<float> scale = std::nullopt,
    std::optional<uint32_t> sliding_window_size = std::nullopt,
    const std::optional<MemoryConfig>& memory_config = std::nullopt,
    std::optional<operations::transformer::SDPAProgramConfig> program_config = std::nullopt,
    std::optional<DeviceComputeKernelConfig> compute_kernel_config = std::nullopt
        TTCODEGEN_ADDED_8101(,
                             std::optional<operations::transformer::PagedCacheGeometryOverride>
                                 paged_cache_geometry = std::nullopt,
                             std::optional<uint32_t> cache_position_modulo = std::nullopt,
                             uint32_t spec_multi_pos_tiles = 0));

}  // namespace ttnn::transformer
