#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(binary_shift_tile_init, binary_left_shift);
TTCODEGEN_SFPU_BINARY_FORMAT(binary_left_shift_tile, binary_left_shift);
TTCODEGEN_SFPU_BINARY_FORMAT(binary_right_shift_tile, binary_right_shift);
TTCODEGEN_SFPU_BINARY_FORMAT(binary_logical_right_shift_tile, binary_logical_right_shift);

}  // namespace ckernel
