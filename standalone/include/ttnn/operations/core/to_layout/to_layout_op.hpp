#pragma once

#include <optional>

#include "ttnn/core.hpp"
#include "ttnn/tensor/tensor.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Converts a tensor to `layout`, or returns it unchanged. `dtype` is used only for tilizing a
/// row-major tensor on the device.
Tensor to_layout(const Tensor& tensor_arg, Layout layout,
                 const std::optional<DataType>& dtype = std::nullopt,
                 const std::optional<MemoryConfig>& memory_config = std::nullopt,
                 const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt,
                 float pad_value = 0.0F);

}  // namespace ttnn
