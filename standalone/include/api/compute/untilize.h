#pragma once

#include "api/compute/common.h"
#include "api/compute/sentinel/compute_kernel_sentinel.h"

namespace ckernel {

ALWI void untilize_init(std::uint32_t, std::uint32_t = __builtin_LINE(), TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    prepare_fpu(fpu_mode(FpuOperation::Untilize), "untilize_init", here);
}

template <std::uint32_t block_ct_dim = 1>
ALWI void untilize_block(std::uint32_t icb, std::uint32_t full_ct_dim, std::uint32_t ocb,
                         TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    compute_of(processor).untilize(processor, icb, full_ct_dim, ocb, here);
}

ALWI void untilize_uninit(std::uint32_t, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    prepare_fpu(fpu_mode(FpuOperation::None), "untilize_uninit", here, {},
                {.unpack = true, .math = false});
}

}  // namespace ckernel
