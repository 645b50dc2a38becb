#pragma once

#include <array>

#include "api/compute/common.h"

namespace ttcodegen::device {

/// Stores the running means, then the running sums of squares or, `scaled` by a factor, variances.
inline void store_welford(SfpuOperation operation, std::uint32_t mean_tile, std::uint32_t group,
                          float factor, bool scaled, Location here) {
    for (const std::uint32_t which : {0U, 1U}) {
        run_sfpu(
            operation,
            sfpu_call({mean_tile + which}, {which, group, __builtin_bit_cast(std::uint32_t, factor),
                                            static_cast<std::uint32_t>(scaled)}),
            here);
    }
}

/// 1 / (index + 1), from the kernel's reciprocal table as far as it reaches.
template <std::size_t size>
float welford_reciprocal(std::uint32_t index, const std::array<std::uint32_t, size>& table) {
    return index < size ? __builtin_bit_cast(float, table.data()[index])
                        : 1.0F / static_cast<float>(index + 1);
}

}  // namespace ttcodegen::device

namespace ckernel {

TTCODEGEN_SFPU_INIT(welford_init, welford_update);
/// Resets the running means and sums.
TTCODEGEN_SFPU_INIT(welford_clear, welford_update);

ALWI void welford_reinit(std::uint32_t cbid, std::uint32_t call_line = __builtin_LINE(),
                         TTCODEGEN_HERE) {
    (void)cbid;
    (void)call_line;
    using namespace ttcodegen::device;
    prepare_fpu(fpu_mode(FpuOperation::Copy), "welford_reinit", here);
}

/// Adds `num_rows` values of each column, starting at row `start_row`, as samples that are numbered
/// from `start_idx`.
template <std::uint32_t reciprocal_size>
ALWI void welford_update_rows(std::uint32_t input_dst_idx, std::uint32_t start_idx,
                              std::uint32_t start_row, std::uint32_t num_rows,
                              const std::array<std::uint32_t, reciprocal_size>& reciprocal_lut,
                              TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    assert_that(start_row + num_rows <= 32, "start_row + num_rows <= 32", here);
    SfpuCall call = sfpu_call({input_dst_idx}, {start_idx, start_row, num_rows, reciprocal_size});
    call.data = reciprocal_lut.data();
    run_sfpu(SfpuOperation::welford_update, call, here);
}

template <std::uint32_t reciprocal_size>
ALWI void welford_update(std::uint32_t input_dst_idx, std::uint32_t start_idx,
                         const std::array<std::uint32_t, reciprocal_size>& reciprocal_lut,
                         TTCODEGEN_HERE) {
    welford_update_rows<reciprocal_size>(input_dst_idx, start_idx, 0, 32, reciprocal_lut, here);
}

ALWI void welford_save_state(std::uint32_t mean_dst_idx, std::uint32_t group_id, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    store_welford(SfpuOperation::welford_store_raw, mean_dst_idx, group_id, 1.0F, false, here);
}

ALWI void welford_save_state(std::uint32_t mean_dst_idx, TTCODEGEN_HERE) {
    welford_save_state(mean_dst_idx, 0, here);
}

ALWI void welford_restore_state(std::uint32_t mean_dst_idx, std::uint32_t group_id,
                                TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    for (const std::uint32_t which : {0U, 1U}) {
        run_sfpu(SfpuOperation::welford_load_raw,
                 sfpu_call({mean_dst_idx + which}, {which, group_id}), here);
    }
}

ALWI void welford_restore_state(std::uint32_t mean_dst_idx, TTCODEGEN_HERE) {
    welford_restore_state(mean_dst_idx, 0, here);
}

/// Packs means and variances into the first rows of two tiles.
template <std::size_t reciprocal_size>
ALWI void welford_finalize_to_row(std::uint32_t mean_dst_idx, std::uint32_t scale_idx,
                                  const std::array<std::uint32_t, reciprocal_size>& reciprocal_lut,
                                  TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    store_welford(SfpuOperation::welford_store_row, mean_dst_idx, 0,
                  welford_reciprocal(scale_idx, reciprocal_lut), true, here);
}

/// Packs means and variances in the layout of welford_save_state.
template <std::size_t reciprocal_size>
ALWI void welford_finalize_to_face(std::uint32_t mean_dst_idx, std::uint32_t group_id,
                                   std::uint32_t scale_idx,
                                   const std::array<std::uint32_t, reciprocal_size>& reciprocal_lut,
                                   TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    store_welford(SfpuOperation::welford_store_raw, mean_dst_idx, group_id,
                  welford_reciprocal(scale_idx, reciprocal_lut), true, here);
}

template <std::size_t reciprocal_size>
ALWI void welford_finalize_to_face(std::uint32_t mean_dst_idx, std::uint32_t scale_idx,
                                   const std::array<std::uint32_t, reciprocal_size>& reciprocal_lut,
                                   TTCODEGEN_HERE) {
    welford_finalize_to_face(mean_dst_idx, 0, scale_idx, reciprocal_lut, here);
}

}  // namespace ckernel
