#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

/// The parameters are the bits of the bounds: floats, or integers.
TTCODEGEN_SFPU_UNARY_PAIR_2(clamp);
TTCODEGEN_SFPU_UNARY_2(clamp_tile_int32, clamp_int32);

}  // namespace ckernel
