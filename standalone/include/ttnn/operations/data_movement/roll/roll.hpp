#pragma once

#include "ttnn/types.hpp"

namespace ttnn {

/// Rotates the elements by `shifts` along the dimensions; elements shifted out at one end enter at
/// the other.
ttnn::Tensor roll(const ttnn::Tensor& input_tensor, const ttnn::SmallVector<int>& shifts,
                  const ttnn::SmallVector<int>& input_dims);
ttnn::Tensor roll(const ttnn::Tensor& input_tensor, int shifts, int dim);

}  // namespace ttnn
