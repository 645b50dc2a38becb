#pragma once

#include <optional>
#include <vector>

#include "ttnn/types.hpp"

namespace ttnn {

/// Concatenates tensors along `dim`; in the first one's layout and, by default, interleaved
/// DRAM.
ttnn::Tensor concat(const std::vector<ttnn::Tensor>& input_tensors, int dim,
                    const std::optional<MemoryConfig>& memory_config = std::nullopt,
                    const std::optional<ttnn::Tensor>& optional_output_tensor = std::nullopt,
                    unsigned int groups = 1,
                    const std::optional<ttnn::CoreRangeSet>& sub_core_grids = std::nullopt);

}  // namespace ttnn
