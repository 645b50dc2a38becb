#pragma once

#include "api/compute/common.h"
#include "api/compute/sentinel/compute_kernel_sentinel.h"

namespace ckernel {

/// `transpose` transposes each tile of the second operand.
ALWI void mm_block_init_short(std::uint32_t, std::uint32_t, const std::uint32_t transpose = 0,
                              std::uint32_t ct_dim = 1, std::uint32_t rt_dim = 1, std::uint32_t = 1,
                              std::uint32_t = __builtin_LINE(), TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    FpuParameters parameters;
    parameters.transpose_faces = transpose != 0;
    parameters.transpose_within_faces = transpose != 0;
    parameters.block_columns = ct_dim;
    parameters.block_rows = rt_dim;
    prepare_fpu(fpu_mode(FpuOperation::Matmul), "mm_init", here, parameters);
}

ALWI void matmul_block_init(std::uint32_t in0_cb_id, std::uint32_t in1_cb_id,
                            const std::uint32_t transpose = 0, std::uint32_t ct_dim = 1,
                            std::uint32_t rt_dim = 1, std::uint32_t kt_dim = 1,
                            std::uint32_t call_line = __builtin_LINE(), TTCODEGEN_HERE) {
    mm_block_init_short(in0_cb_id, in1_cb_id, transpose, ct_dim, rt_dim, kt_dim, call_line, here);
}

ALWI void matmul_init(std::uint32_t in0_cb_id, std::uint32_t in1_cb_id,
                      const std::uint32_t transpose = 0, std::uint32_t call_line = __builtin_LINE(),
                      TTCODEGEN_HERE) {
    mm_block_init_short(in0_cb_id, in1_cb_id, transpose, 1, 1, 1, call_line, here);
}

ALWI void mm_block_init(std::uint32_t in0_cb_id, std::uint32_t in1_cb_id, std::uint32_t out_cb_id,
                        const std::uint32_t transpose = 0, std::uint32_t ct_dim = 1,
                        std::uint32_t rt_dim = 1, std::uint32_t kt_dim = 1,
                        std::uint32_t call_line = __builtin_LINE(), TTCODEGEN_HERE) {
    // In a matmul the second operand is in source A.
    ttcodegen::device::configure_formats(in1_cb_id, in0_cb_id, out_cb_id, "mm_block_init", here);
    mm_block_init_short(in0_cb_id, in1_cb_id, transpose, ct_dim, rt_dim, kt_dim, call_line, here);
}

ALWI void mm_init(std::uint32_t in0_cb_id, std::uint32_t in1_cb_id, std::uint32_t out_cb_id,
                  const std::uint32_t transpose = 0, std::uint32_t call_line = __builtin_LINE(),
                  TTCODEGEN_HERE) {
    ttcodegen::device::configure_formats(in1_cb_id, in0_cb_id, out_cb_id, "mm_init", here);
    mm_block_init_short(in0_cb_id, in1_cb_id, transpose, 1, 1, 1, call_line, here);
}

ALWI void mm_init_short(std::uint32_t in0_cb_id, std::uint32_t in1_cb_id,
                        const std::uint32_t transpose = 0,
                        std::uint32_t call_line = __builtin_LINE(), TTCODEGEN_HERE) {
    mm_block_init_short(in0_cb_id, in1_cb_id, transpose, 1, 1, 1, call_line, here);
}

ALWI void mm_init_short_with_dt(std::uint32_t in0_cb_id, std::uint32_t in1_cb_id,
                                std::uint32_t c_in_old_srca, const std::uint32_t transpose = 0,
                                TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    reconfigure_format(FormatRegister::SourceA, c_in_old_srca, in1_cb_id, here);
    mm_init_short(in0_cb_id, in1_cb_id, transpose, 0, here);
}

ALWI void mm_block_init_short_with_dt(std::uint32_t in0_cb_id, std::uint32_t in1_cb_id,
                                      std::uint32_t old_in1_cb_id,
                                      const std::uint32_t transpose = 0, std::uint32_t ct_dim = 1,
                                      std::uint32_t rt_dim = 1, std::uint32_t kt_dim = 1,
                                      std::uint32_t call_line = __builtin_LINE(), TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    reconfigure_format(FormatRegister::SourceA, old_in1_cb_id, in1_cb_id, here);
    mm_block_init_short(in0_cb_id, in1_cb_id, transpose, ct_dim, rt_dim, kt_dim, call_line, here);
}

ALWI void mm_block_init_short_with_both_dt(std::uint32_t in0_cb_id, std::uint32_t in1_cb_id,
                                           std::uint32_t old_in0_cb_id, std::uint32_t old_in1_cb_id,
                                           const std::uint32_t transpose = 0,
                                           std::uint32_t ct_dim = 1, std::uint32_t rt_dim = 1,
                                           std::uint32_t kt_dim = 1, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    reconfigure_format(FormatRegister::SourceA, old_in1_cb_id, in1_cb_id, here);
    reconfigure_format(FormatRegister::SourceB, old_in0_cb_id, in0_cb_id, here);
    mm_block_init_short(in0_cb_id, in1_cb_id, transpose, ct_dim, rt_dim, kt_dim, 0, here);
}

/// Accumulates the matmul of two tiles in the tile of DST.
ALWI void matmul_tiles(std::uint32_t in0_cb_id, std::uint32_t in1_cb_id,
                       std::uint32_t in0_tile_index, std::uint32_t in1_tile_index,
                       std::uint32_t idst, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    compute_of(processor).matmul(processor, in0_cb_id, in1_cb_id, in0_tile_index, in1_tile_index,
                                 idst, 1, 1, 1, here);
}

/// Matmuls of a column of `rt_dim` tiles, `kt_dim` apart, and a row of `ct_dim` tiles.
ALWI void matmul_block(std::uint32_t in0_cb_id, std::uint32_t in1_cb_id,
                       std::uint32_t in0_tile_index, std::uint32_t in1_tile_index,
                       std::uint32_t idst, const std::uint32_t, std::uint32_t ct_dim,
                       std::uint32_t rt_dim, std::uint32_t kt_dim, std::uint32_t = __builtin_LINE(),
                       TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    compute_of(processor).matmul(processor, in0_cb_id, in1_cb_id, in0_tile_index, in1_tile_index,
                                 idst, ct_dim, rt_dim, kt_dim, here);
}

}  // namespace ckernel
