#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(binary_bitwise_tile_init, bitwise_and_binary);
TTCODEGEN_SFPU_BINARY_FORMAT(bitwise_and_binary_tile, bitwise_and_binary);
TTCODEGEN_SFPU_BINARY_FORMAT(bitwise_or_binary_tile, bitwise_or_binary);
TTCODEGEN_SFPU_BINARY_FORMAT(bitwise_xor_binary_tile, bitwise_xor_binary);

}  // namespace ckernel
