#pragma once

#include <cstdint>
#include <optional>

#include "ttnn/types.hpp"

namespace ttnn {

/// Exchanges two dimensions of a tensor.
ttnn::Tensor transpose(const ttnn::Tensor& input_tensor, std::int64_t dim1, std::int64_t dim2,
                       const std::optional<MemoryConfig>& memory_config_arg,
                       float pad_value = 0.0F);
ttnn::Tensor transpose(const ttnn::Tensor& input_tensor, std::int64_t dim1, std::int64_t dim2,
                       float pad_value = 0.0F);

}  // namespace ttnn
