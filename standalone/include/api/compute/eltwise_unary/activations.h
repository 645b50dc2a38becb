#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_UNARY_PAIR(hardsigmoid);
TTCODEGEN_SFPU_UNARY_PAIR(softsign);
/// The parameters are the bits of alpha and of its reciprocal, floats.
TTCODEGEN_SFPU_UNARY_PAIR_2(celu);
/// The parameter is the bits of lambda, a float.
TTCODEGEN_SFPU_UNARY_PAIR_1(softshrink);
TTCODEGEN_SFPU_UNARY_PAIR_1(hardshrink);

}  // namespace ckernel
