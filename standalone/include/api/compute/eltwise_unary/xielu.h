#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

/// The parameters are the bits of alpha for positive and for negative values, floats.
TTCODEGEN_SFPU_UNARY_PAIR_2(xielu);

}  // namespace ckernel
