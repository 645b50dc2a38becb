#pragma once

#include "api/compute/common.h"
#include "api/compute/sentinel/compute_kernel_sentinel.h"

namespace ckernel {

/// Makes `block` adjacent tiles of 32 rows of the input.
ALWI void tilize_init(std::uint32_t, std::uint32_t block, std::uint32_t,
                      std::uint32_t = __builtin_LINE(), TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    FpuParameters parameters;
    parameters.block_columns = block;
    prepare_fpu(fpu_mode(FpuOperation::Tilize), "tilize_init", here, parameters);
}

ALWI void tilize_init_short_with_dt(std::uint32_t old_icb, std::uint32_t new_icb,
                                    std::uint32_t block, std::uint32_t ocb, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    reconfigure_format(FormatRegister::SourceA, old_icb, new_icb, here);
    tilize_init(new_icb, block, ocb, 0, here);
}

ALWI void tilize_block(std::uint32_t icb, std::uint32_t block, std::uint32_t ocb,
                       std::uint32_t input_tile_index = 0, std::uint32_t output_tile_index = 0,
                       TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    compute_of(processor).tilize(processor, icb, block, ocb, input_tile_index, output_tile_index,
                                 here);
}

ALWI void tilize_uninit(std::uint32_t, std::uint32_t, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    prepare_fpu(fpu_mode(FpuOperation::None), "tilize_uninit", here, {},
                {.unpack = true, .math = false});
}

ALWI void tilize_uninit_with_dt(std::uint32_t old_icb, std::uint32_t new_icb, std::uint32_t ocb,
                                TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    tilize_uninit(old_icb, ocb, here);
    reconfigure_format(FormatRegister::SourceA, old_icb, new_icb, here);
}

ALWI void fast_tilize_init(std::uint32_t icb, std::uint32_t full_dim, std::uint32_t ocb,
                           std::uint32_t call_line = __builtin_LINE(), TTCODEGEN_HERE) {
    tilize_init(icb, full_dim, ocb, call_line, here);
}

ALWI void fast_tilize_init_with_dt(std::uint32_t icb, std::uint32_t full_dim, std::uint32_t ocb,
                                   TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    reconfigure_format(FormatRegister::SourceA, kNoCircularBuffer, icb, here);
    reconfigure_format(FormatRegister::SourceB, kNoCircularBuffer, icb, here);
    tilize_init(icb, full_dim, ocb, 0, here);
}

ALWI void fast_tilize_uninit(std::uint32_t icb, std::uint32_t ocb, TTCODEGEN_HERE) {
    tilize_uninit(icb, ocb, here);
}

ALWI void fast_tilize_block(std::uint32_t icb, std::uint32_t block, std::uint32_t ocb,
                            std::uint32_t input_tile_index = 0, std::uint32_t output_tile_index = 0,
                            TTCODEGEN_HERE) {
    tilize_block(icb, block, ocb, input_tile_index, output_tile_index, here);
}

}  // namespace ckernel
