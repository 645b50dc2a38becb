#pragma once

#include <cstdint>
#include <optional>
#include <tuple>

#include "ttnn/types.hpp"

namespace ttnn::transformer {

/// (B, S, (H + 2 Hkv) * D) into queries (B, H, S, D), keys (B, Hkv, D, S) or, without
/// transpose_key, (B, Hkv, S, D), and values (B, Hkv, S, D). With input_tensor_kv keys and values
/// come from that one.
std::tuple<Tensor, Tensor, Tensor> split_query_key_value_and_split_heads(
    const Tensor& input_tensor, const std::optional<Tensor>& input_tensor_kv, uint32_t num_heads,
    std::optional<uint32_t> num_kv_heads, bool transpose_key,
    const std::optional<MemoryConfig>& memory_config, bool use_falcon7b_backend = false);

}  // namespace ttnn::transformer
