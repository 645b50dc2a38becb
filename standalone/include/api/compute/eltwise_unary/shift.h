#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(left_shift_tile_init, left_shift);
template <DataFormat data_format>
TTCODEGEN_SFPU_UNARY_1(left_shift_tile, left_shift);

TTCODEGEN_SFPU_INIT(right_shift_tile_init, right_shift);
template <DataFormat data_format>
TTCODEGEN_SFPU_UNARY_1(right_shift_tile, right_shift);

}  // namespace ckernel
