#pragma once

#include <optional>

#include "ttnn/tensor/tensor.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Converts a tensor to another data type; returns a copy if the data type is the same.
Tensor typecast(const Tensor& input, const DataType& output_dtype,
                const std::optional<MemoryConfig>& memory_config_arg = std::nullopt,
                const std::optional<Tensor>& optional_output_tensor = std::nullopt,
                const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt);

}  // namespace ttnn
