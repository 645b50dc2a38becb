#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

// The parameters are the bits of floats, or integers.
TTCODEGEN_SFPU_UNARY_PAIR_1(unary_ne);
TTCODEGEN_SFPU_UNARY_PAIR_1(unary_eq);
TTCODEGEN_SFPU_UNARY_PAIR_1(unary_gt);
TTCODEGEN_SFPU_UNARY_PAIR_1(unary_ge);
TTCODEGEN_SFPU_UNARY_PAIR_1(unary_lt);
TTCODEGEN_SFPU_UNARY_PAIR_1(unary_le);
TTCODEGEN_SFPU_UNARY_1(unary_ne_tile_int32, unary_ne_int32);
TTCODEGEN_SFPU_UNARY_1(unary_eq_tile_int32, unary_eq_int32);
TTCODEGEN_SFPU_UNARY_1(unary_gt_tile_int32, unary_gt_int32);
TTCODEGEN_SFPU_UNARY_1(unary_ge_tile_int32, unary_ge_int32);
TTCODEGEN_SFPU_UNARY_1(unary_lt_tile_int32, unary_lt_int32);
TTCODEGEN_SFPU_UNARY_1(unary_le_tile_int32, unary_le_int32);

TTCODEGEN_SFPU_UNARY_PAIR(gtz);
TTCODEGEN_SFPU_UNARY_PAIR(nez);
TTCODEGEN_SFPU_UNARY_PAIR(gez);
TTCODEGEN_SFPU_UNARY_PAIR(ltz);
TTCODEGEN_SFPU_UNARY_PAIR(eqz);
TTCODEGEN_SFPU_UNARY_PAIR(lez);
TTCODEGEN_SFPU_UNARY(gtz_tile_int32, gtz_int32);
TTCODEGEN_SFPU_UNARY(nez_tile_int32, nez_int32);
TTCODEGEN_SFPU_UNARY(gez_tile_int32, gez_int32);
TTCODEGEN_SFPU_UNARY(ltz_tile_int32, ltz_int32);
TTCODEGEN_SFPU_UNARY(eqz_tile_int32, eqz_int32);
TTCODEGEN_SFPU_UNARY(lez_tile_int32, lez_int32);
TTCODEGEN_SFPU_UNARY(eqz_tile_uint16, eqz_int32);
TTCODEGEN_SFPU_UNARY(eqz_tile_uint32, eqz_int32);
TTCODEGEN_SFPU_UNARY(nez_tile_uint16, nez_int32);
TTCODEGEN_SFPU_UNARY(nez_tile_uint32, nez_int32);

}  // namespace ckernel
