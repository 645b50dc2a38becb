#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

template <DataFormat data_format>
TTCODEGEN_SFPU_INIT(mul_int_tile_init, mul_int);
TTCODEGEN_SFPU_BINARY_FORMAT(mul_int_tile, mul_int);

}  // namespace ckernel
