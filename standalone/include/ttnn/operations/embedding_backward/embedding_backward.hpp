#pragma once

#include <optional>

#include "ttnn/types.hpp"

namespace ttnn {

/// The gradient of an embedding's weight: rows of the output gradient (1, 1, B*S, D) summed by
/// index (B, S).
Tensor embedding_bw(const Tensor& input_tensor_arg, const Tensor& weight_tensor_arg,
                    const Tensor& output_gradient_tensor_arg,
                    std::optional<const DataType> dtype = std::nullopt,
                    const std::optional<MemoryConfig>& memory_config = std::nullopt,
                    const std::optional<Tensor>& optional_output_tensor = std::nullopt);

}  // namespace ttnn
