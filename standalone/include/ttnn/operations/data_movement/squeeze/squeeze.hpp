#pragma once

#include "ttnn/types.hpp"

namespace ttnn {

/// Removes the given dimensions of size 1, by default all.
Tensor squeeze(const Tensor& input_tensor, const SmallVector<int>& dim);
Tensor squeeze(const Tensor& input_tensor, int dim);
Tensor squeeze(const Tensor& input_tensor);

}  // namespace ttnn
