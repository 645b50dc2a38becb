#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

ALWI void remainder_tile_init(std::uint32_t param0, std::uint32_t param1, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    init_sfpu_operation(SfpuOperation::remainder, "remainder_tile_init", here, {param0, param1});
}

/// The parameters are the bits of the divisor and of its reciprocal, floats.
TTCODEGEN_SFPU_UNARY_2(remainder_tile, remainder);
/// The parameters are those of the initialisation.
TTCODEGEN_SFPU_UNARY(remainder_tile, remainder);

}  // namespace ckernel
