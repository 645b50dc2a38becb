#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_UNARY_PAIR(i0);

}  // namespace ckernel
