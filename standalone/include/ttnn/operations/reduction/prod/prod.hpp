#pragma once

#include <cstdint>
#include <optional>

#include "ttnn/types.hpp"

namespace ttnn {

/// Product over one dimension, or over all; bf16 only. The result is TILE.
Tensor prod(const Tensor& input, std::optional<int64_t> dim = std::nullopt, bool keepdim = false,
            const std::optional<MemoryConfig>& memory_config = std::nullopt);

}  // namespace ttnn
