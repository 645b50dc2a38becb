#pragma once

#include <optional>

#include "ttnn/types.hpp"

namespace ttnn {

/// Moves a tensor to another address or memory config; the input is freed.
Tensor move(const Tensor& input_tensor,
            const std::optional<MemoryConfig>& output_mem_config = std::nullopt);

}  // namespace ttnn
