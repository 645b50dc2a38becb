#pragma once

#include <optional>

#include "ttnn/types.hpp"

namespace ttnn::transformer {

/// (B, H, S, D) to (B, S, H * D).
ttnn::Tensor concatenate_heads(const Tensor& input_tensor,
                               const std::optional<MemoryConfig>& memory_config = std::nullopt);

}  // namespace ttnn::transformer
