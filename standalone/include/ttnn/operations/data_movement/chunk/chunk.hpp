#pragma once

#include <cstdint>
#include <vector>

#include "ttnn/types.hpp"

namespace ttnn {

/// Splits along `dim` into at most `num_chunks` parts, all but the last of the same size.
std::vector<ttnn::Tensor> chunk(const ttnn::Tensor& input_tensor, std::uint32_t num_chunks,
                                int dim);

}  // namespace ttnn
