#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_BINARY_PAIR(div_int32_floor);
TTCODEGEN_SFPU_BINARY_PAIR(div_int32_trunc);

}  // namespace ckernel
