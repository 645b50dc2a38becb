#pragma once

#include <cstdint>
#include <optional>

#include "ttnn/types.hpp"

namespace ttnn {

/// Gathers elements by index along `dim`; the result has the shape of the index tensor.
Tensor gather(const Tensor& input_tensor, std::int8_t dim, const Tensor& input_index_tensor,
              bool sparse_grad, const std::optional<tt::tt_metal::MemoryConfig>& memory_config,
              std::optional<Tensor> optional_output_tensor = std::nullopt,
              const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt);

}  // namespace ttnn
