#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(rounding_op_tile_init, ceil);
TTCODEGEN_SFPU_UNARY(ceil_tile, ceil);
TTCODEGEN_SFPU_UNARY(floor_tile, floor);
TTCODEGEN_SFPU_UNARY(trunc_tile, trunc);
TTCODEGEN_SFPU_UNARY(frac_tile, frac);
TTCODEGEN_SFPU_UNARY(stochastic_round_tile, stochastic_round);

ALWI void round_tile(std::uint32_t idst, std::int32_t decimals, TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(round, {idst}, {static_cast<std::uint32_t>(decimals)});
}

}  // namespace ckernel
