#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

template <bool fast_and_approx = true>
TTCODEGEN_SFPU_INIT(gelu_tile_init, gelu);
template <bool fast_and_approx = true>
TTCODEGEN_SFPU_UNARY(gelu_tile, gelu);
template <bool fast_and_approx = false>
TTCODEGEN_SFPU_INIT(gelu_derivative_tile_init, gelu_derivative);
template <bool fast_and_approx = false>
TTCODEGEN_SFPU_UNARY(gelu_derivative_tile, gelu_derivative);

}  // namespace ckernel
