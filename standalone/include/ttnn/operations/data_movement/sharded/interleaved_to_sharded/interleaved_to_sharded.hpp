#pragma once

#include <optional>

#include "ttnn/types.hpp"

namespace ttnn {

ttnn::Tensor interleaved_to_sharded(
    const ttnn::Tensor& input_tensor, const MemoryConfig& sharded_memory_config,
    const std::optional<DataType>& data_type_arg = std::nullopt,
    const std::optional<bool>& keep_l1_aligned = std::nullopt,
    const std::optional<Tensor>& preallocated_output = std::nullopt);

}  // namespace ttnn
