#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

ALWI void dropout_kernel_init(std::uint32_t seed = 0, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    init_sfpu_operation(SfpuOperation::dropout, "dropout_kernel_init", here, {seed});
}

/// Zeroes elements with a probability of `probability` / 2^31 and multiplies the others by the
/// float whose bits are `scale_factor`.
ALWI void dropout_tile(std::uint32_t idst, std::uint32_t probability, std::uint32_t scale_factor,
                       TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(dropout, {idst}, {probability, scale_factor});
}

}  // namespace ckernel
