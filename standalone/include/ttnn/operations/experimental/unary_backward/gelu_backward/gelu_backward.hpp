#pragma once

#include <optional>
#include <string>

#include "ttnn/core.hpp"
#include "ttnn/types.hpp"

namespace ttnn::experimental {

/// The gradient of gelu: "none" (error function) or "tanh".
Tensor gelu_bw(const Tensor& grad_output_tensor, const Tensor& input_tensor,
               const std::string& approximate = "none",
               const std::optional<MemoryConfig>& memory_config = std::nullopt,
               std::optional<Tensor> input_grad_tensor = std::nullopt);

}  // namespace ttnn::experimental
