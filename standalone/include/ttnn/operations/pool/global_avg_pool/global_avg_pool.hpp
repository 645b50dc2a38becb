#pragma once

#include <optional>

#include "ttnn/tensor/tensor.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

namespace operations::pool {

/// Mean over height and width of an (N, H, W, C) tensor: (N, 1, 1, C), TILE.
Tensor global_avg_pool2d(const Tensor& input,
                         const std::optional<MemoryConfig>& memory_config_arg = std::nullopt,
                         const std::optional<DataType>& output_dtype = std::nullopt);

}  // namespace operations::pool

using ttnn::operations::pool::global_avg_pool2d;

}  // namespace ttnn
