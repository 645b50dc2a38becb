#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(cumsum_tile_init, cumsum);

/// Cumulative sums down the columns; unless `first`, continued from the previous tile's last row.
ALWI void cumsum_tile(std::uint32_t idst, bool first = true, TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(cumsum, {idst}, {static_cast<std::uint32_t>(first)});
}

}  // namespace ckernel
