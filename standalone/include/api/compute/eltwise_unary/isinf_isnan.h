#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_UNARY_PAIR(isinf);
TTCODEGEN_SFPU_UNARY_PAIR(isposinf);
TTCODEGEN_SFPU_UNARY_PAIR(isneginf);
TTCODEGEN_SFPU_UNARY_PAIR(isnan);
TTCODEGEN_SFPU_UNARY_PAIR(isfinite);

}  // namespace ckernel
