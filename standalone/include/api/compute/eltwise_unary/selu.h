#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

/// The parameters are the bits of the scale and of alpha, floats.
TTCODEGEN_SFPU_UNARY_PAIR_2(selu);

}  // namespace ckernel
