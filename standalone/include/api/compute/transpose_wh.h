#pragma once

#include "api/compute/common.h"
#include "api/compute/sentinel/compute_kernel_sentinel.h"

namespace ckernel {

ALWI void transpose_wh_init_short(std::uint32_t icb, std::uint32_t = __builtin_LINE(),
                                  TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    prepare_fpu(fpu_mode(FpuOperation::Transpose), "transpose_wh_init_short", here,
                {.operand = icb});
}

ALWI void transpose_wh_init(std::uint32_t icb, std::uint32_t ocb, std::uint32_t = __builtin_LINE(),
                            TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    configure_formats(icb, icb, ocb, "transpose_wh_init", here);
    prepare_fpu(fpu_mode(FpuOperation::Transpose), "transpose_wh_init", here, {.operand = icb});
}

ALWI void transpose_wh_tile(std::uint32_t icb, std::uint32_t itile, std::uint32_t idst,
                            TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    Processor& processor = current();
    compute_of(processor).copy(processor, fpu_mode(FpuOperation::Transpose), icb, itile, idst,
                               here);
}

}  // namespace ckernel
