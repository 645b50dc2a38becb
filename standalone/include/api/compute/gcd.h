#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_BINARY_PAIR(gcd);

}  // namespace ckernel
