#pragma once

#include <cstdint>
#include <optional>

#include "ttnn/tensor/tensor.hpp"
#include "ttnn/types.hpp"

namespace ttnn::experimental {

/// Zeroes elements with probability `prob` and multiplies the others by `scale`. The choice depends
/// on the seed only; the hardware's random generator makes another one.
Tensor dropout(const Tensor& input_tensor, float prob, float scale, uint32_t seed,
               bool use_per_device_seed = true,
               const std::optional<MemoryConfig>& memory_config = std::nullopt,
               const std::optional<Tensor>& optional_output_tensor = std::nullopt);

}  // namespace ttnn::experimental
