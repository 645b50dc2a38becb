#pragma once

#include <cstdint>
#include <optional>

#include "tt_stl/small_vector.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Dimension i of the result is dimension dims[i] of the input.
ttnn::Tensor permute(const ttnn::Tensor& input_tensor, const SmallVector<std::int64_t>& dims,
                     const std::optional<MemoryConfig>& memory_config, float pad_value = 0.0F);
ttnn::Tensor permute(const ttnn::Tensor& input_tensor, const SmallVector<std::int64_t>& dims,
                     float pad_value = 0.0F);

}  // namespace ttnn
