#pragma once

#include <cstdint>
#include <optional>

#include "ttnn/types.hpp"

namespace ttnn {

/// For each of 32 users one of the indices, u32 or s32 and row-major, drawn from the `k` greatest
/// bf16 values, times `temp`, that together reach the probability `p`. Values and indices have the
/// shape (1, 1, 32, candidates); `k`, `p` and `temp` have one element per user. The same seed draws
/// the same indices; 0 counts as none.
Tensor sampling(const Tensor& input_values_tensor, const Tensor& input_indices_tensor,
                const Tensor& k, const Tensor& p, const Tensor& temp,
                const std::optional<std::uint32_t>& seed = std::nullopt,
                const std::optional<tt::tt_metal::CoreRangeSet>& sub_core_grids = std::nullopt,
                const std::optional<Tensor>& output_tensor = std::nullopt);

}  // namespace ttnn
