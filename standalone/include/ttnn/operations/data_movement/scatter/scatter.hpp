#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ttnn/types.hpp"

namespace ttnn {

/// Scatters the source's elements into a copy of the input at the indices along `dim`; with a
/// reduction, "add" or "multiply", they are combined with the old elements.
Tensor scatter(const Tensor& input_tensor, const std::int32_t& dim, const Tensor& index_tensor,
               const Tensor& source_tensor,
               const std::optional<MemoryConfig>& output_memory_config = std::nullopt,
               const std::optional<std::string>& opt_reduction_string = std::nullopt,
               const std::optional<CoreRangeSet>& sub_core_grid = std::nullopt);
Tensor scatter_add(const Tensor& input_tensor, const std::int32_t& dim, const Tensor& index_tensor,
                   const Tensor& source_tensor,
                   const std::optional<MemoryConfig>& output_memory_config = std::nullopt,
                   const std::optional<CoreRangeSet>& sub_core_grid = std::nullopt);

}  // namespace ttnn
