#pragma once

#include <optional>

#include "ttnn/types.hpp"

namespace ttnn {

ttnn::Tensor reshard(const ttnn::Tensor& input_tensor, const MemoryConfig& memory_config,
                     const std::optional<Tensor>& optional_output_tensor = std::nullopt);

}  // namespace ttnn
