#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(softplus_tile_init, softplus);

/// The parameters are the bits of floats.
ALWI void softplus_tile(std::uint32_t idst, std::uint32_t beta, std::uint32_t beta_reciprocal,
                        std::uint32_t threshold, TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(softplus, {idst}, {beta, beta_reciprocal, threshold});
}

}  // namespace ckernel
