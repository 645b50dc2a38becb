#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

enum { ADD_UNARY = 0, SUB_UNARY = 1, MUL_UNARY = 2, DIV_UNARY = 3, RSUB_UNARY = 4 };

TTCODEGEN_SFPU_INIT(binop_with_scalar_tile_init, add_unary);
// The parameters are the bits of floats. DIV_UNARY multiplies: kernels pass the reciprocal.
TTCODEGEN_SFPU_UNARY_1(add_unary_tile, add_unary);
TTCODEGEN_SFPU_UNARY_1(sub_unary_tile, sub_unary);
TTCODEGEN_SFPU_UNARY_1(mul_unary_tile, mul_unary);
TTCODEGEN_SFPU_UNARY_1(div_unary_tile, div_unary);
TTCODEGEN_SFPU_UNARY_1(rsub_unary_tile, rsub_unary);
TTCODEGEN_SFPU_UNARY_1(add_unary_tile_int32, add_unary_int32);
TTCODEGEN_SFPU_UNARY_1(sub_unary_tile_int32, sub_unary_int32);

}  // namespace ckernel
