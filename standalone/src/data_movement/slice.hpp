#pragma once

#include <optional>

#include "data_movement/strided_copy.hpp"

namespace ttcodegen::cpu {

/// Elements begins[i], begins[i] + steps[i], ... below ends[i] of each dimension; begins and ends
/// are within the tensor, steps are positive.
Tensor slice(const Tensor& input, const Extents& begins, const Extents& ends, const Extents& steps,
             const std::optional<MemoryConfig>& memory_config = std::nullopt,
             const std::optional<Tensor>& output_tensor = std::nullopt);

/// The slice [begin, end) along one dimension.
Tensor slice_along(const Tensor& input, std::size_t dim, std::size_t begin, std::size_t end,
                   const std::optional<MemoryConfig>& memory_config = std::nullopt);

}  // namespace ttcodegen::cpu
