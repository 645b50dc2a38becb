#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_UNARY_PAIR(identity);
TTCODEGEN_SFPU_UNARY(identity_tile_uint32, identity);

}  // namespace ckernel
