#pragma once

#include "api/compute/common.h"
#include "api/compute/sentinel/compute_kernel_sentinel.h"

namespace ckernel {

/// Also masks packing to the reduced values, until reduce_uninit.
template <PoolType reduce_type, ReduceDim reduce_dim, bool enforce_fp32_accumulation = false>
ALWI void reduce_init(std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t = __builtin_LINE(),
                      TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    prepare_fpu(reduce_mode(reduce_type, reduce_dim), "reduce_init", here);
    Processor& processor = current();
    compute_of(processor).reduce_mask(processor, true, static_cast<Reduction>(reduce_dim), here);
}

template <bool enforce_fp32_accumulation = false>
ALWI void reduce_uninit(std::uint32_t = 0, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    Processor& processor = current();
    compute_of(processor).reduce_mask(processor, false, Reduction::Row, here);
}

/// The first row of each face of the scaler tile multiplies the operand.
template <PoolType reduce_type, ReduceDim reduce_dim, bool enforce_fp32_accumulation = false>
ALWI void reduce_tile(std::uint32_t icb, std::uint32_t icb_scaler, std::uint32_t itile,
                      std::uint32_t itile_scaler, std::uint32_t idst, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    Processor& processor = current();
    compute_of(processor).reduce(processor, reduce_mode(reduce_type, reduce_dim), icb, icb_scaler,
                                 itile, itile_scaler, idst, here);
}

}  // namespace ckernel
