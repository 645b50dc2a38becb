#pragma once

#include <cstdint>
#include <optional>

#include "ttcodegen/release.hpp"
#include "ttnn/operations/core/compute_kernel/compute_kernel_config.hpp"
#include "ttnn/operations/transformer/sdpa_config.hpp"
#include "ttnn/types.hpp"

namespace ttnn::transformer {

/// softmax(scale * Q K^T + mask) V for Q (B, Hq, Sq, D) and K, V (B, Hkv, Sk, D), Hq a multiple of
/// Hkv; scale defaults to 1 / sqrt(D). Causal attention takes no mask. `attention_sink` (1, Hq, 1,
/// 1) adds one logit to each row's sum.
ttnn::Tensor scaled_dot_product_attention(
    const ttnn::Tensor& input_tensor_q, const ttnn::Tensor& input_tensor_k,
    const ttnn::Tensor& input_tensor_v, const std::optional<ttnn::Tensor>& attn_mask = std::nullopt,
    bool is_causal = true, std::optional<float> scale = std::nullopt,
    std::optional<uint32_t> sliding_window_size = std::nullopt,
    const std::optional<MemoryConfig>& memory_config = std::nullopt,
    std::optional<operations::transformer::SDPAProgramConfig> program_config = std::nullopt,
    std::optional<DeviceComputeKernelConfig> compute_kernel_config = std::nullopt,
    const std::optional<ttnn::Tensor>& attention_sink = std::nullopt TTCODEGEN_ADDED_8101(
        , const std::optional<ttnn::Tensor>& cu_window_seqlens = std::nullopt,
        uint32_t windowed_q_token_offset = 0,
        const std::optional<ttnn::Tensor>& windowed_q_token_offset_tensor = std::nullopt,
        bool output_concat_heads = false,
        const std::optional<ttnn::Tensor>& attn_mask_block_map = std::nullopt));

/// Causal attention of a chunk of queries that starts at `chunk_start_idx`, over a paged KV cache
/// (blocks, Hkv, block size, D) that is addressed by `page_table_tensor` (B, blocks per user),
/// i32.
ttnn::Tensor chunked_scaled_dot_product_attention(
    const ttnn::Tensor& input_tensor_q, const ttnn::Tensor& input_tensor_k,
    const ttnn::Tensor& input_tensor_v, const ttnn::Tensor& page_table_tensor,
    int64_t chunk_start_idx, std::optional<float> scale = std::nullopt,
    const std::optional<MemoryConfig>& memory_config = std::nullopt,
    std::optional<operations::transformer::SDPAProgramConfig> program_config = std::nullopt,
    std::optional<DeviceComputeKernelConfig> compute_kernel_config = std::nullopt
        TTCODEGEN_ADDED_8101(,
                             std::optional<operations::transformer::PagedCacheGeometryOverride>
                                 paged_cache_geometry = std::nullopt,
                             std::optional<uint32_t> cache_position_modulo = std::nullopt,
                             const std::optional<ttnn::Tensor>& attention_sink = std::nullopt));

/// The same with the start in a tensor of one i32.
ttnn::Tensor chunked_scaled_dot_product_attention(
    const ttnn::Tensor& input_tensor_q, const ttnn::Tensor& input_tensor_k,
    const ttnn::Tensor& input_tensor_v, const ttnn::Tensor& page_table_tensor,
    const ttnn::Tensor& chunk_start_idx_tensor, std::optional<float> scale = std::nullopt,
    const std::optional<MemoryConfig>& memory_config = std::nullopt,
    std::optional<operations::transformer::SDPAProgramConfig> program_config = std::nullopt,
    std::optional<DeviceComputeKernelConfig> compute_kernel_config = std::nullopt
        TTCODEGEN_ADDED_8101(,
                             std::optional<operations::transformer::PagedCacheGeometryOverride>
                                 paged_cache_geometry = std::nullopt,
                             std::optional<uint32_t> cache_position_modulo = std::nullopt,
                             const std::optional<ttnn::Tensor>& attention_sink = std::nullopt));

}  // namespace ttnn::transformer
