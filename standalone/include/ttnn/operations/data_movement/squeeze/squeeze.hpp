#pragma once

#include "ttnn/types.hpp"

namespace ttnn {

/// The tensor without the dimensions of size 1 that are named, by default without all.
Tensor squeeze(const Tensor& input_tensor, const SmallVector<int>& dim);
Tensor squeeze(const Tensor& input_tensor, int dim);
Tensor squeeze(const Tensor& input_tensor);

}  // namespace ttnn
