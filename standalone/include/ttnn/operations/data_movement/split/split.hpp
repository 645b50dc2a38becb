#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ttnn/types.hpp"

namespace ttnn {

/// Splits along `dim` into parts of the given sizes; with one size, the last may be smaller.
std::vector<ttnn::Tensor> split(
    const ttnn::Tensor& input_tensor, const ttnn::SmallVector<std::int64_t>& split_sizes,
    std::int64_t dim = 0, const std::optional<ttnn::MemoryConfig>& memory_config = std::nullopt);
std::vector<ttnn::Tensor> split(
    const ttnn::Tensor& input_tensor, std::int64_t split_size, std::int64_t dim = 0,
    const std::optional<ttnn::MemoryConfig>& memory_config = std::nullopt);

}  // namespace ttnn
