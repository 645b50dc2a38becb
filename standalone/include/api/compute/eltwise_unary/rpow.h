#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(rpow_tile_init, rpow);

/// `base_val`, the bits of a float, to the power of the tile.
ALWI void rpow_tile(std::uint32_t idst, std::uint32_t base_val,
                    int vector_mode = static_cast<int>(VectorMode::RC), TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(rpow, {idst}, {base_val}, vector_mode);
}

}  // namespace ckernel
