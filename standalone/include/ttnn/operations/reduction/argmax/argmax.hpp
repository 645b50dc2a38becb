#pragma once

#include <optional>

#include "ttcodegen/release.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Index of the maximum along the last dimension, or among all elements; u32, row-major.
Tensor argmax(const Tensor& input_tensor, const std::optional<int>& dim = std::nullopt,
              bool keepdim = false,
              const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt,
              TTCODEGEN_BEFORE_8101(bool use_multicore = false, )
                  const std::optional<MemoryConfig>& memory_config = std::nullopt,
              std::optional<Tensor> optional_output_tensor = std::nullopt TTCODEGEN_SINCE_8101(
                  , std::optional<bool> enable_secondary_dm = std::nullopt));

}  // namespace ttnn
