#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(sqrt_tile_init, sqrt);
template <bool FAST_APPROX = false>
TTCODEGEN_SFPU_UNARY(sqrt_tile, sqrt);

}  // namespace ckernel
