#pragma once

#include "api/compute/common.h"
#include "api/compute/src_order.h"

namespace ckernel {

template <SrcOrder src_order = SrcOrder::Regular>
ALWI void compute_kernel_hw_startup(std::uint32_t icb0, std::uint32_t icb1, std::uint32_t ocb,
                                    TTCODEGEN_HERE) {
    constexpr bool reverse = src_order == SrcOrder::Reverse;
    ttcodegen::device::configure_formats(reverse ? icb1 : icb0, reverse ? icb0 : icb1, ocb,
                                         "compute_kernel_hw_startup", here);
}

ALWI void compute_kernel_hw_startup(std::uint32_t icb0, std::uint32_t ocb, TTCODEGEN_HERE) {
    compute_kernel_hw_startup(icb0, icb0, ocb, here);
}

}  // namespace ckernel
