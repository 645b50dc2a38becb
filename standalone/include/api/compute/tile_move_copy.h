#pragma once

#include "api/compute/common_globals.h"
#include "api/compute/sentinel/compute_kernel_sentinel.h"
#include "ttcodegen/device/low_level_kernels.hpp"

namespace ckernel {

/// `transpose` exchanges the off-diagonal faces, `transpose_within_16x16_face` transposes each.
ALWI void copy_tile_to_dst_init_short(std::uint32_t cbid, std::uint32_t transpose = 0,
                                      std::uint32_t transpose_within_16x16_face = false,
                                      std::uint32_t = __builtin_LINE(), TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    FpuParameters parameters;
    parameters.transpose_faces = transpose != 0;
    parameters.transpose_within_faces = transpose_within_16x16_face != 0;
    parameters.operand = cbid;
    prepare_fpu(fpu_mode(FpuOperation::Copy), "copy_tile_to_dst_init_short", here, parameters);
}

ALWI void copy_init(std::uint32_t cbid, std::uint32_t transpose = 0,
                    std::uint32_t transpose_within_16x16_face = false,
                    std::uint32_t call_line = __builtin_LINE(), TTCODEGEN_HERE) {
    copy_tile_to_dst_init_short(cbid, transpose, transpose_within_16x16_face, call_line, here);
}

ALWI void copy_tile_init(std::uint32_t cbid, std::uint32_t call_line = __builtin_LINE(),
                         TTCODEGEN_HERE) {
    copy_tile_to_dst_init_short(cbid, 0, false, call_line, here);
}

ALWI void copy_tile_to_dst_init_short_with_dt(std::uint32_t old_cbid, std::uint32_t new_cbid,
                                              std::uint32_t transpose = 0, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    reconfigure_format(FormatRegister::SourceA, old_cbid, new_cbid, here);
    copy_tile_to_dst_init_short(new_cbid, transpose, false, 0, here);
}

ALWI void copy_tile(std::uint32_t in_cb_id, std::uint32_t in_tile_index,
                    std::uint32_t dst_tile_index, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    Processor& processor = current();
    compute_of(processor).copy(processor, fpu_mode(FpuOperation::Copy), in_cb_id, in_tile_index,
                               dst_tile_index, here);
}

ALWI void copy_block(std::uint32_t in_cb_id, std::uint32_t start_in_tile_index,
                     std::uint32_t start_dst_tile_index, std::uint32_t ntiles, TTCODEGEN_HERE) {
    for (std::uint32_t tile = 0; tile < ntiles; ++tile) {
        copy_tile(in_cb_id, start_in_tile_index + tile, start_dst_tile_index + tile, here);
    }
}

ALWI void copy_block_matmul_partials(std::uint32_t in_cb_id, std::uint32_t start_in_tile_index,
                                     std::uint32_t start_dst_tile_index, std::uint32_t ntiles,
                                     TTCODEGEN_HERE) {
    copy_block(in_cb_id, start_in_tile_index, start_dst_tile_index, ntiles, here);
}

}  // namespace ckernel
