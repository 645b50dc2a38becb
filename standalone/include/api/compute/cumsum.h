#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(cumsum_tile_init, cumsum);

/// Sums down the columns; unless `first`, on top of the last row of the tile before.
ALWI void cumsum_tile(std::uint32_t idst, bool first = true, TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(cumsum, {idst}, {static_cast<std::uint32_t>(first)});
}

}  // namespace ckernel
