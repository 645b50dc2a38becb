#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tt-metalium/core_coord.hpp>

#include "ttcodegen/release.hpp"

namespace ttnn::operations::transformer {

/// Chunk sizes and cores of the attention kernels. The CPU backend checks the chunk rules and
/// schedules work itself.
struct SDPAProgramConfig {
    tt::tt_metal::CoreCoord compute_with_storage_grid_size;
    std::optional<tt::tt_metal::CoreRangeSet> sub_core_grids;
    std::size_t q_chunk_size;
    std::size_t k_chunk_size;
    std::optional<bool> exp_approx_mode;
    uint32_t max_cores_per_head_batch = 16;
#if !TTCODEGEN_EXACT_BEFORE_8101
    uint32_t max_k_splits = 1;
#endif
};

#if TTCODEGEN_EXACT_8101
struct PagedCacheGeometryOverride {};
#endif

}  // namespace ttnn::operations::transformer
