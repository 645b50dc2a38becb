#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_BINARY_PAIR(add_binary);
TTCODEGEN_SFPU_BINARY_PAIR(sub_binary);
TTCODEGEN_SFPU_BINARY_PAIR(mul_binary);
TTCODEGEN_SFPU_BINARY_PAIR(div_binary);
TTCODEGEN_SFPU_BINARY_PAIR(rsub_binary);
TTCODEGEN_SFPU_BINARY_PAIR(power_binary);
TTCODEGEN_SFPU_BINARY_PAIR(eq_binary);
TTCODEGEN_SFPU_BINARY_PAIR(ne_binary);
TTCODEGEN_SFPU_BINARY_PAIR(lt_binary);
TTCODEGEN_SFPU_BINARY_PAIR(gt_binary);
TTCODEGEN_SFPU_BINARY_PAIR(le_binary);
TTCODEGEN_SFPU_BINARY_PAIR(ge_binary);

}  // namespace ckernel
