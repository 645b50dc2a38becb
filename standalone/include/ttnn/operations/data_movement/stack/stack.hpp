#pragma once

#include <vector>

#include "ttnn/types.hpp"

namespace ttnn {

/// Stacks tensors along a new dimension at `dim`.
Tensor stack(const std::vector<Tensor>& input_tensors, int dim);

}  // namespace ttnn
