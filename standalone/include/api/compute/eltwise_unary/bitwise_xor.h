#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_UNARY_PAIR_1(bitwise_xor);

}  // namespace ckernel
