#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

/// The parameters are the bits of the order n and of (-1)^(n+1) n!, floats.
TTCODEGEN_SFPU_UNARY_PAIR_2(polygamma);

}  // namespace ckernel
