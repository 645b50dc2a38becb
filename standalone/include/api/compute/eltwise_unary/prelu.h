#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

/// The parameter is the bits of the slope, a float.
TTCODEGEN_SFPU_UNARY_PAIR_1(prelu);

}  // namespace ckernel
