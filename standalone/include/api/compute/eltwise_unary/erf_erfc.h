#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

template <bool fast_and_approx = true>
TTCODEGEN_SFPU_INIT(erf_tile_init, erf);
template <bool fast_and_approx = true>
TTCODEGEN_SFPU_UNARY(erf_tile, erf);
TTCODEGEN_SFPU_UNARY_PAIR(erfc);

}  // namespace ckernel
