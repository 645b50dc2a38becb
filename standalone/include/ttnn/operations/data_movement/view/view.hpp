#pragma once

#include <cstdint>

#include "tt_stl/span.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Reshapes without copying; refused if elements would have to move.
ttnn::Tensor view(const ttnn::Tensor& input_tensor, const ttnn::Shape& logical_shape);
ttnn::Tensor view(const ttnn::Tensor& input_tensor, ttsl::Span<const std::int32_t> shape_vector);

}  // namespace ttnn
