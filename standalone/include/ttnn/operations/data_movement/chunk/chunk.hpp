#pragma once

#include <cstdint>
#include <vector>

#include "ttnn/types.hpp"

namespace ttnn {

/// At most `num_chunks` parts along `dim`, all but the last of one size.
std::vector<ttnn::Tensor> chunk(const ttnn::Tensor& input_tensor, std::uint32_t num_chunks,
                                int dim);

}  // namespace ttnn
