#pragma once

#include <optional>

#include "ttnn/types.hpp"

namespace ttnn {

/// A tensor of tiles in row-major layout, cut after the elements of index `output_tensor_end`.
Tensor untilize_with_unpadding(const Tensor& input_tensor, const Shape& output_tensor_end,
                               const std::optional<MemoryConfig>& memory_config = std::nullopt,
                               bool use_multicore = true,
                               const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt);

}  // namespace ttnn
