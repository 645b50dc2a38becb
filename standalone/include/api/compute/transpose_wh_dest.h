#pragma once

#include "api/compute/common.h"

namespace ckernel {

template <bool is_32bit = false>
ALWI void transpose_wh_dest_init_short(TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    prepare_fpu(fpu_mode(FpuOperation::TransposeDestination), "transpose_wh_dest_init_short", here,
                {}, {.unpack = false, .math = true});
}

template <bool is_32bit = false>
ALWI void transpose_wh_dest(std::uint32_t idst, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    compute_of(processor).transpose_destination(processor, idst, here);
}

}  // namespace ckernel
