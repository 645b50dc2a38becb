#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ttnn/types.hpp"

namespace ttnn {

/// Parts of the given sizes along `dim`; with one size, the last part may be smaller.
std::vector<ttnn::Tensor> split(
    const ttnn::Tensor& input_tensor, const ttnn::SmallVector<std::int64_t>& split_sizes,
    std::int64_t dim = 0, const std::optional<ttnn::MemoryConfig>& memory_config = std::nullopt);
std::vector<ttnn::Tensor> split(
    const ttnn::Tensor& input_tensor, std::int64_t split_size, std::int64_t dim = 0,
    const std::optional<ttnn::MemoryConfig>& memory_config = std::nullopt);

}  // namespace ttnn
