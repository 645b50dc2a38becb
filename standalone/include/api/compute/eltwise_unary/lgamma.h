#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_UNARY_PAIR(lgamma_stirling);

}  // namespace ckernel
