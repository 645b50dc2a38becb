#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "ttcodegen/release.hpp"
#include "ttnn/tensor/tensor.hpp"
#include "ttnn/types.hpp"

namespace ttnn::experimental {

/// Splits (B, 1, S, (H + 2 Hkv) * D) into queries (B, H, S, D), keys (B, Hkv, S, D), or (B, Hkv, D,
/// S) with transpose_k_heads, and values (B, Hkv, S, D). Keys and values come from input_tensor_kv
/// if it is given.
std::tuple<Tensor, Tensor, Tensor> nlp_create_qkv_heads(
    const Tensor& input_tensor_q, const std::optional<Tensor>& input_tensor_kv,
    uint32_t num_q_heads, std::optional<uint32_t> num_kv_heads, bool transpose_k_heads,
    TTCODEGEN_SINCE_8101(bool kv_tied, ) const std::optional<MemoryConfig>& memory_config,
    const std::optional<std::vector<std::optional<Tensor>>>& optional_output_tensors =
        std::nullopt);

}  // namespace ttnn::experimental
