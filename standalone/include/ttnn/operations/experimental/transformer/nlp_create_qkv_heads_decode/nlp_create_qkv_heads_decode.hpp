#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <tuple>

#include "ttnn/tensor/tensor.hpp"
#include "ttnn/types.hpp"

namespace ttnn::experimental {

/// Splits one token of each of B users, (1, 1, B, (H + 2 Hkv) * D), into queries (1, B, H, D) and
/// keys and values (1, B, Hkv, D), height-sharded with one user per core.
std::tuple<Tensor, Tensor, Tensor> nlp_create_qkv_heads_decode(
    const Tensor& input_tensor, uint32_t num_heads, std::optional<const uint32_t> num_kv_heads,
    std::optional<std::array<Tensor, 3>>& optional_output_tensors,
    std::optional<const bool> overlap_qk_coregrid = true,
    const std::optional<const Tensor>& batch_offset = std::nullopt,
    std::optional<const uint32_t> slice_size = std::nullopt,
    const std::optional<MemoryConfig>& memory_config = std::nullopt);

}  // namespace ttnn::experimental
