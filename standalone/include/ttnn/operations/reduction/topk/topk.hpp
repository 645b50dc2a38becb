#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "ttcodegen/release.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// The `k` largest or smallest values along `dim`, sorted, and their indices.
std::vector<Tensor> topk(
    const Tensor& input_tensor, std::uint32_t k, std::int8_t dim, bool largest, bool sorted,
    const std::optional<tt::tt_metal::MemoryConfig>& memory_config = std::nullopt,
    const std::optional<tt::tt_metal::CoreRangeSet>& sub_core_grids = std::nullopt,
    const std::optional<Tensor>& indices_tensor = std::nullopt,
    std::optional<std::tuple<Tensor&, Tensor&>> preallocated_output_tensors =
        std::nullopt TTCODEGEN_ADDED_8101(, bool stable = false));

}  // namespace ttnn
