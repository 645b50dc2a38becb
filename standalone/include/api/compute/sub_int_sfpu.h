#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(sub_int_tile_init, sub_int);
TTCODEGEN_SFPU_BINARY_FORMAT(sub_int_tile, sub_int);
TTCODEGEN_SFPU_INIT(rsub_int_tile_init, rsub_int);
TTCODEGEN_SFPU_BINARY_FORMAT(rsub_int_tile, rsub_int);

}  // namespace ckernel
