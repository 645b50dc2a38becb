#pragma once

#include <optional>

#include "ttcodegen/release.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Index of the maximum along the last dimension, or among all elements; u32, row-major.
#if TTCODEGEN_TT_METAL >= 8101
Tensor argmax(const Tensor& input_tensor, const std::optional<int>& dim = std::nullopt,
              bool keepdim = false,
              const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt,
              const std::optional<MemoryConfig>& memory_config = std::nullopt,
              std::optional<Tensor> optional_output_tensor = std::nullopt,
              std::optional<bool> enable_secondary_dm = std::nullopt);
#else
Tensor argmax(const Tensor& input_tensor, const std::optional<int>& dim = std::nullopt,
              bool keepdim = false,
              const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt,
              bool use_multicore = false,
              const std::optional<MemoryConfig>& memory_config = std::nullopt,
              std::optional<Tensor> optional_output_tensor = std::nullopt);
#endif

}  // namespace ttnn
