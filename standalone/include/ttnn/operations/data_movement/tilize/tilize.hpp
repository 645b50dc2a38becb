#pragma once

#include <optional>

#include "ttcodegen/release.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Tilizes a row-major tensor whose height and width are multiples of 32.
ttnn::Tensor tilize(const ttnn::Tensor& input_tensor,
                    const std::optional<MemoryConfig>& memory_config = std::nullopt,
                    std::optional<DataType> output_dtype = std::nullopt, bool use_multicore = true,
                    bool use_low_perf = false,
                    TTCODEGEN_ADDED_8101(tt::tt_metal::Tile tile = tt::tt_metal::Tile(), )
                        const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt);

}  // namespace ttnn
