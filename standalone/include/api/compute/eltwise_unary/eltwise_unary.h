#pragma once

#include "api/compute/common.h"
#include "api/compute/sentinel/compute_kernel_sentinel.h"

namespace ckernel {

/// Full initialisation for copy_tile and packing; operations of the vector engine need their own.
ALWI void unary_op_init_common(std::uint32_t icb, std::uint32_t ocb,
                               std::uint32_t = __builtin_LINE(), TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    configure_formats(icb, icb, ocb, "unary_op_init_common", here);
    prepare_fpu(fpu_mode(FpuOperation::Copy), "unary_op_init_common", here, {.operand = icb});
}

ALWI void init_sfpu(std::uint32_t icb, std::uint32_t ocb,
                    std::uint32_t call_line = __builtin_LINE(), TTCODEGEN_HERE) {
    unary_op_init_common(icb, ocb, call_line, here);
}

}  // namespace ckernel
