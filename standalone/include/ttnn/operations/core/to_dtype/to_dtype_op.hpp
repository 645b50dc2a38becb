#pragma once

#include "ttnn/tensor/tensor.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Converts a host tensor to another data type.
Tensor to_dtype(const Tensor& input_tensor, const DataType& dtype);

}  // namespace ttnn
