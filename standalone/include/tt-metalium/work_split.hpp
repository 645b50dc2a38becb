#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "tt-metalium/core_coord.hpp"

namespace tt::tt_metal {

int find_max_divisor(std::uint32_t val, std::uint32_t start_max_div);
int find_max_block_size(std::uint32_t val, std::uint32_t max_block_size = 8);

/// The first `target_num_cores` cores of a grid, column by column unless `row_wise`.
/// @throws std::runtime_error if the grid has fewer.
CoreRangeSet num_cores_to_corerangeset(CoreCoord start_core, std::uint32_t target_num_cores,
                                       CoreCoord grid_size, bool row_wise = false);
CoreRangeSet num_cores_to_corerangeset(std::uint32_t target_num_cores, CoreCoord grid_size,
                                       bool row_wise = false);

/// Splits work over cores: number of cores, all of them, those with more work, those with less, and
/// the units of each group. The second group is empty if the work divides evenly.
std::tuple<std::uint32_t, CoreRangeSet, CoreRangeSet, CoreRangeSet, std::uint32_t, std::uint32_t>
split_work_to_cores(CoreCoord grid_size, std::uint32_t units_to_divide, bool row_wise = false);

}  // namespace tt::tt_metal
