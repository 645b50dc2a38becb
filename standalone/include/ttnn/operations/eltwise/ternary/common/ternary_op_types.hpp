#pragma once

#include <cstdint>
#include <variant>

#include "ttnn/tensor/tensor.hpp"

namespace ttnn::operations::ternary {

using TensorScalarVariant = std::variant<float, int, Tensor>;
using ScalarVariant = std::variant<float, std::int32_t, std::uint32_t>;

}  // namespace ttnn::operations::ternary
