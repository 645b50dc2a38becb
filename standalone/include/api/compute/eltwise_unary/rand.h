#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

ALWI void rand_tile_init(std::uint32_t seed = 0, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    init_sfpu_operation(SfpuOperation::rand, "rand_tile_init", here, {seed});
}

/// Uniform values in [from, from + scale); both are the bits of floats.
ALWI void rand_tile(std::uint32_t idst, std::uint32_t from, std::uint32_t scale, TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(rand, {idst}, {from, scale});
}

}  // namespace ckernel
