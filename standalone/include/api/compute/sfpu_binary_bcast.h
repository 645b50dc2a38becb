#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(sfpu_bcast_col_init, add_bcast_col);
TTCODEGEN_SFPU_INIT(sfpu_bcast_row_init, add_bcast_row);
TTCODEGEN_SFPU_INIT(sfpu_sub_bcast_col_init, add_bcast_col);

ALWI void sfpu_sub_bcast_col(std::uint32_t dst_data_idx, std::uint32_t dst_col_vec_idx,
                             TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(sub_bcast_col, {dst_data_idx, dst_col_vec_idx, dst_data_idx});
}

TTCODEGEN_SFPU_INIT(sfpu_add_bcast_col_init, add_bcast_col);

ALWI void sfpu_add_bcast_col(std::uint32_t dst_data_idx, std::uint32_t dst_col_vec_idx,
                             TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(add_bcast_col, {dst_data_idx, dst_col_vec_idx, dst_data_idx});
}

TTCODEGEN_SFPU_INIT(sfpu_mul_bcast_col_init, add_bcast_col);

ALWI void sfpu_mul_bcast_col(std::uint32_t dst_data_idx, std::uint32_t dst_col_vec_idx,
                             TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(mul_bcast_col, {dst_data_idx, dst_col_vec_idx, dst_data_idx});
}

TTCODEGEN_SFPU_INIT(sfpu_sub_bcast_row_init, add_bcast_row);

ALWI void sfpu_sub_bcast_row(std::uint32_t dst_data_idx, std::uint32_t dst_row_vec_idx,
                             TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(sub_bcast_row, {dst_data_idx, dst_row_vec_idx, dst_data_idx});
}

TTCODEGEN_SFPU_INIT(sfpu_add_bcast_row_init, add_bcast_row);

ALWI void sfpu_add_bcast_row(std::uint32_t dst_data_idx, std::uint32_t dst_row_vec_idx,
                             TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(add_bcast_row, {dst_data_idx, dst_row_vec_idx, dst_data_idx});
}

TTCODEGEN_SFPU_INIT(sfpu_mul_bcast_row_init, add_bcast_row);

ALWI void sfpu_mul_bcast_row(std::uint32_t dst_data_idx, std::uint32_t dst_row_vec_idx,
                             TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(mul_bcast_row, {dst_data_idx, dst_row_vec_idx, dst_data_idx});
}
template <BroadcastType Dim>
ALWI void sfpu_bcast_init(TTCODEGEN_HERE) {
    static_assert(Dim == BroadcastType::COL || Dim == BroadcastType::ROW);
    if constexpr (Dim == BroadcastType::COL) {
        sfpu_bcast_col_init(here);
    } else {
        sfpu_bcast_row_init(here);
    }
}

template <BroadcastType Dim, EltwiseBinaryType Op>
ALWI void sfpu_bcast(std::uint32_t dst_data_idx, std::uint32_t dst_bcast_idx, TTCODEGEN_HERE) {
    static_assert(Dim == BroadcastType::COL || Dim == BroadcastType::ROW);
    static_assert(Op == ELWADD || Op == ELWSUB || Op == ELWMUL);
    using ttcodegen::device::SfpuOperation;
    constexpr bool column = Dim == BroadcastType::COL;
    constexpr SfpuOperation operation =
        Op == ELWADD   ? (column ? SfpuOperation::add_bcast_col : SfpuOperation::add_bcast_row)
        : Op == ELWSUB ? (column ? SfpuOperation::sub_bcast_col : SfpuOperation::sub_bcast_row)
                       : (column ? SfpuOperation::mul_bcast_col : SfpuOperation::mul_bcast_row);
    ttcodegen::device::run_sfpu(
        operation, ttcodegen::device::sfpu_call({dst_data_idx, dst_bcast_idx, dst_data_idx}), here);
}

}  // namespace ckernel
