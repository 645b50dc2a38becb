#pragma once

#include <optional>

#include "ttnn/tensor/tensor.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// The tensor in another data type; a copy also where the data type stays.
Tensor typecast(const Tensor& input, const DataType& output_dtype,
                const std::optional<MemoryConfig>& memory_config_arg = std::nullopt,
                const std::optional<Tensor>& optional_output_tensor = std::nullopt,
                const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt);

}  // namespace ttnn
