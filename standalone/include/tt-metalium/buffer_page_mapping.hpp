#pragma once

#include <cstdint>
#include <vector>

#include "tt-metalium/core_coord.hpp"

namespace tt::tt_metal {

/// The host page at each position of each core of a sharded buffer.
struct UncompressedBufferPageMapping {
    static constexpr std::uint32_t PADDING = UINT32_MAX;

    std::vector<CoreCoord> all_cores;
    std::vector<std::vector<std::uint32_t>> core_host_page_indices;
};

}  // namespace tt::tt_metal
