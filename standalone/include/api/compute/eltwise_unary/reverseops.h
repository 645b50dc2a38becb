#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(rsub_tile_init, rsub_unary);
TTCODEGEN_SFPU_UNARY_1(rsub_tile, rsub_unary);

}  // namespace ckernel
