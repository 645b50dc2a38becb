#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

/// The parameters are the bits of the bounds, floats.
TTCODEGEN_SFPU_UNARY_PAIR_2(hardtanh);

}  // namespace ckernel
