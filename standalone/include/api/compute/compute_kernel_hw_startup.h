#pragma once

#include "api/compute/common.h"

namespace ckernel {

ALWI void compute_kernel_hw_startup(std::uint32_t icb0, std::uint32_t icb1, std::uint32_t ocb,
                                    TTCODEGEN_HERE) {
    ttcodegen::device::configure_formats(icb0, icb1, ocb, "compute_kernel_hw_startup", here);
}

ALWI void compute_kernel_hw_startup(std::uint32_t icb0, std::uint32_t ocb, TTCODEGEN_HERE) {
    compute_kernel_hw_startup(icb0, icb0, ocb, here);
}

}  // namespace ckernel
