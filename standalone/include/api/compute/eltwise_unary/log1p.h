#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

template <bool fast_and_approx = false>
TTCODEGEN_SFPU_INIT(log1p_tile_init, log1p);
template <bool fast_and_approx = false>
TTCODEGEN_SFPU_UNARY(log1p_tile, log1p);

}  // namespace ckernel
