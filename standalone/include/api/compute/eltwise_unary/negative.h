#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_UNARY_PAIR(negative);
TTCODEGEN_SFPU_UNARY(negative_tile_int32, negative_int32);

}  // namespace ckernel
