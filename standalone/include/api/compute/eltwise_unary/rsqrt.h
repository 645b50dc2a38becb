#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

template <bool legacy_compat = false>
TTCODEGEN_SFPU_INIT(rsqrt_tile_init, rsqrt);
template <bool legacy_compat = false, bool FAST_APPROX = false>
TTCODEGEN_SFPU_UNARY(rsqrt_tile, rsqrt);

}  // namespace ckernel
