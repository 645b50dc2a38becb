#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_BINARY_PAIR(remainder_int32);
TTCODEGEN_SFPU_BINARY_PAIR(remainder_binary);

}  // namespace ckernel
