#pragma once

#include <cstdint>
#include <optional>

#include "ttnn/types.hpp"

namespace ttnn {

/// Samples an index, u32 or s32 and row-major, for each of 32 users from the `k` largest bf16
/// values, times `temp`, that together reach the probability `p`. Values and indices have the shape
/// (1, 1, 32, candidates); `k`, `p` and `temp` have one element per user. The same seed draws the
/// same indices; 0 means no seed.
Tensor sampling(const Tensor& input_values_tensor, const Tensor& input_indices_tensor,
                const Tensor& k, const Tensor& p, const Tensor& temp,
                const std::optional<std::uint32_t>& seed = std::nullopt,
                const std::optional<tt::tt_metal::CoreRangeSet>& sub_core_grids = std::nullopt,
                const std::optional<Tensor>& output_tensor = std::nullopt);

}  // namespace ttnn
