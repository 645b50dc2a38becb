#pragma once

#include "api/compute/common_globals.h"
#include "api/compute/eltwise_unary/binop_with_scalar.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(rsub_tile_init, rsub_unary);
TTCODEGEN_SFPU_UNARY_1(rsub_tile, rsub_unary);
TTCODEGEN_SFPU_INIT(rsub_unary_int32_tile_init, rsub_unary_int32);
TTCODEGEN_SFPU_UNARY_1(rsub_unary_int32_tile, rsub_unary_int32);

}  // namespace ckernel
