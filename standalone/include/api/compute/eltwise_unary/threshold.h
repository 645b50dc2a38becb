#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

/// The parameters are the bits of the threshold and of the replacement of values up to it, floats.
TTCODEGEN_SFPU_UNARY_PAIR_2(threshold);

}  // namespace ckernel
