#pragma once

#include <optional>

#include "ttnn/tensor/tensor.hpp"
#include "ttnn/types.hpp"

namespace ttnn::experimental {

/// (B, H, S, D) to (B, 1, S, H * D).
ttnn::Tensor nlp_concat_heads(const Tensor& input_tensor,
                              const std::optional<MemoryConfig>& memory_config = std::nullopt);

}  // namespace ttnn::experimental
