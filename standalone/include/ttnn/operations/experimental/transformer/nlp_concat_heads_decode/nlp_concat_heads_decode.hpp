#pragma once

#include <cstdint>
#include <optional>

#include "ttnn/tensor/tensor.hpp"
#include "ttnn/types.hpp"

namespace ttnn::experimental {

/// (1, B, H padded to 32, D), height-sharded, to (1, 1, B padded to 32, num_heads * D).
ttnn::Tensor nlp_concat_heads_decode(
    const Tensor& input_tensor, uint32_t num_heads,
    const std::optional<MemoryConfig>& memory_config = std::nullopt,
    const std::optional<Tensor>& optional_output_tensor = std::nullopt,
    const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt);

}  // namespace ttnn::experimental
