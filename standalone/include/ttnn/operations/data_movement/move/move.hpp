#pragma once

#include <optional>

#include "ttnn/types.hpp"

namespace ttnn {

/// The tensor at another place in memory; the input is freed.
Tensor move(const Tensor& input_tensor,
            const std::optional<MemoryConfig>& output_mem_config = std::nullopt);

}  // namespace ttnn
