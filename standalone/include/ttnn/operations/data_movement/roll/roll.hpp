#pragma once

#include "ttcodegen/release.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Rotates the elements by `shifts` along the dimensions; elements shifted out at one end enter at
/// the other.
ttnn::Tensor roll(const ttnn::Tensor& input_tensor, const ttnn::SmallVector<int>& shifts,
                  const ttnn::SmallVector<int>& input_dims TTCODEGEN_ADDED_8101(
                      , const std::optional<MemoryConfig>& memory_config = std::nullopt));
ttnn::Tensor roll(const ttnn::Tensor& input_tensor, int shifts,
                  int dim TTCODEGEN_ADDED_8101(
                      , const std::optional<MemoryConfig>& memory_config = std::nullopt));

}  // namespace ttnn
