#pragma once

#include <optional>

#include "ttnn/core.hpp"
#include "ttnn/tensor/tensor.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Converts a device tensor to another memory config, or returns it unchanged.
Tensor to_memory_config(const Tensor& tensor, const MemoryConfig& memory_config,
                        std::optional<DataType> dtype = std::nullopt,
                        const std::optional<Tensor>& output_tensor = std::nullopt);

}  // namespace ttnn
