#pragma once

#include <optional>

#include "ttnn/types.hpp"

namespace ttnn {

/// Converts tiles to row-major layout and slices up to index `output_tensor_end`, inclusive.
Tensor untilize_with_unpadding(const Tensor& input_tensor, const Shape& output_tensor_end,
                               const std::optional<MemoryConfig>& memory_config = std::nullopt,
                               bool use_multicore = true,
                               const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt);

}  // namespace ttnn
