#pragma once

#include <optional>

#include "ttnn/types.hpp"

namespace ttnn {

/// A row-major tensor, height and width multiples of 32, in tiles.
ttnn::Tensor tilize(const ttnn::Tensor& input_tensor,
                    const std::optional<MemoryConfig>& memory_config = std::nullopt,
                    std::optional<DataType> output_dtype = std::nullopt, bool use_multicore = true,
                    bool use_low_perf = false,
                    const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt);

}  // namespace ttnn
