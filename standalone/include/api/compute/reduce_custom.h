#pragma once

#include "api/compute/common.h"

namespace ckernel {

ALWI void reduce_block_max_row_init_runtime(std::uint32_t block_ct_dim, bool = false,
                                            TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    FpuParameters parameters;
    parameters.block_columns = block_ct_dim;
    prepare_fpu(fpu_mode(FpuOperation::ReduceBlockMaxRow), "reduce_block_max_row_init", here,
                parameters);
    Processor& processor = current();
    compute_of(processor).reduce_mask(processor, true, Reduction::Row, here);
}

template <std::uint32_t block_ct_dim, bool respect_trigger = false>
ALWI void reduce_block_max_row_init(TTCODEGEN_HERE) {
    reduce_block_max_row_init_runtime(block_ct_dim, respect_trigger, here);
}

/// Row maxima of a block of consecutive tiles, as many as the initialisation was
/// given.
ALWI void reduce_block_max_row_runtime(std::uint32_t icb, std::uint32_t icb_scaler,
                                       std::uint32_t row_start_index, std::uint32_t idst,
                                       bool = false, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    compute_of(processor).reduce_block_max_row(processor, icb, icb_scaler, row_start_index, idst,
                                               here);
}

template <std::uint32_t block_ct_dim, bool respect_trigger = false>
ALWI void reduce_block_max_row(std::uint32_t icb, std::uint32_t icb_scaler,
                               std::uint32_t row_start_index, std::uint32_t idst, TTCODEGEN_HERE) {
    reduce_block_max_row_runtime(icb, icb_scaler, row_start_index, idst, respect_trigger, here);
}

ALWI void reduce_block_max_row_uninit_runtime(std::uint32_t, bool = false, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    prepare_fpu(fpu_mode(FpuOperation::None), "reduce_block_max_row_uninit", here);
    Processor& processor = current();
    compute_of(processor).reduce_mask(processor, false, Reduction::Row, here);
}

template <bool clear_fp32_accumulation = false, bool respect_trigger = false>
ALWI void reduce_block_max_row_uninit(std::uint32_t icb, TTCODEGEN_HERE) {
    reduce_block_max_row_uninit_runtime(icb, respect_trigger, here);
}

}  // namespace ckernel
