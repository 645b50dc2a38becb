#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_UNARY_PAIR(relu);
TTCODEGEN_SFPU_UNARY(relu_tile_int32, relu_int32);
// The parameters are the bits of floats, or integers.
TTCODEGEN_SFPU_UNARY_PAIR_1(relu_max);
TTCODEGEN_SFPU_UNARY_1(relu_max_tile_int32, relu_max_int32);
TTCODEGEN_SFPU_UNARY_PAIR_1(relu_min);
TTCODEGEN_SFPU_UNARY_1(relu_min_tile_int32, relu_min_int32);

TTCODEGEN_SFPU_INIT(leaky_relu_tile_init, leaky_relu);
ALWI void leaky_relu_tile(std::uint32_t idst, std::uint32_t slope = 0, TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(leaky_relu, {idst}, {slope});
}

}  // namespace ckernel
