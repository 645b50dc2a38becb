#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(rdiv_tile_init, rdiv);

/// `value`, the bits of a float, divided by the tile.
template <RoundingMode rounding_mode = RoundingMode::None>
ALWI void rdiv_tile(std::uint32_t dst_index, std::uint32_t value,
                    int vector_mode = static_cast<int>(VectorMode::RC), TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(rdiv, {dst_index}, {value, static_cast<std::uint32_t>(rounding_mode)},
                       vector_mode);
}

}  // namespace ckernel
