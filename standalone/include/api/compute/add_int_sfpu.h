#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(add_int_tile_init, add_int);
TTCODEGEN_SFPU_BINARY_FORMAT(add_int_tile, add_int);

}  // namespace ckernel
