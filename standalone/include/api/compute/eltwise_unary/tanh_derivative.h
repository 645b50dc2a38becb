#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

template <bool fast_and_approx = false>
TTCODEGEN_SFPU_INIT(tanh_derivative_tile_init, tanh_derivative);
template <bool fast_and_approx = false>
TTCODEGEN_SFPU_UNARY(tanh_derivative_tile, tanh_derivative);

}  // namespace ckernel
