#pragma once

#include "ttnn/types.hpp"

namespace ttnn {

/// Inserts a dimension of size 1 at `dim`.
ttnn::Tensor unsqueeze(const ttnn::Tensor& input_tensor, int dim);

}  // namespace ttnn
