#pragma once

#include "ttnn/types.hpp"

namespace ttnn {

/// The elements shifted by `shifts` along the dimensions; what leaves at one end enters at the
/// other.
ttnn::Tensor roll(const ttnn::Tensor& input_tensor, const ttnn::SmallVector<int>& shifts,
                  const ttnn::SmallVector<int>& input_dims);
ttnn::Tensor roll(const ttnn::Tensor& input_tensor, int shifts, int dim);

}  // namespace ttnn
