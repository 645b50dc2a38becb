// Correct uses of the compute kernel API, one for each value of Case.

#include "compute_cases.hpp"

#include "api/compute/add_int_sfpu.h"
#include "api/compute/bcast.h"
#include "api/compute/common.h"
#include "api/compute/compute_kernel_api.h"
#include "api/compute/eltwise_binary.h"
#include "api/compute/eltwise_binary_sfpu.h"
#include "api/compute/eltwise_unary/comp.h"
#include "api/compute/eltwise_unary/eltwise_unary.h"
#include "api/compute/eltwise_unary/exp.h"
#include "api/compute/eltwise_unary/fill.h"
#include "api/compute/eltwise_unary/negative.h"
#include "api/compute/eltwise_unary/recip.h"
#include "api/compute/eltwise_unary/typecast.h"
#include "api/compute/eltwise_unary/where.h"
#include "api/compute/matmul.h"
#include "api/compute/pack_untilize.h"
#include "api/compute/reduce.h"
#include "api/compute/reduce_custom.h"
#include "api/compute/tile_move_copy.h"
#include "api/compute/tilize.h"
#include "api/compute/transpose_wh.h"
#include "api/compute/transpose_wh_dest.h"
#include "api/compute/untilize.h"
#include "api/compute/welford.h"

namespace {

void pack_first(uint32_t cb, uint32_t tiles = 1) {
    tile_regs_commit();
    tile_regs_wait();
    cb_reserve_back(cb, tiles);
    for (uint32_t tile = 0; tile < tiles; ++tile) {
        pack_tile(tile, cb);
    }
    tile_regs_release();
    cb_push_back(cb, tiles);
}

template <EltwiseBinaryType operation, BroadcastType dimension>
void broadcast() {
    init_bcast<operation, dimension>(kCbA, kCbB, kCbOut);
    tile_regs_acquire();
    any_tiles_bcast<operation, dimension>(kCbA, kCbB, 1, 2, 0);
    pack_first(kCbOut);
}

template <EltwiseBinaryReuseDestType reuse>
void reuse_destination() {
    unary_op_init_common(kCbA, kCbOut);
    tile_regs_acquire();
    copy_tile(kCbA, 0, 0);
    binary_dest_reuse_tiles_init<ELWSUB, reuse>(kCbB);
    binary_dest_reuse_tiles<ELWSUB, reuse>(kCbB, 0, 0);
    pack_first(kCbOut);
}

template <PoolType pool, ReduceDim dimension>
void reduce_two() {
    compute_kernel_hw_startup(kCbA, kCbScaler, kCbOut);
    reduce_init<pool, dimension>(kCbA, kCbScaler, kCbOut);
    tile_regs_acquire();
    reduce_tile<pool, dimension>(kCbA, kCbScaler, 0, 0, 0);
    reduce_tile<pool, dimension>(kCbA, kCbScaler, 1, 0, 0);
    pack_first(kCbOut);
    reduce_uninit();
}

void binary_tile(Case which) {
    binary_op_init_common(kCbA, kCbB, kCbOut);
    tile_regs_acquire();
    if (which == Case::Add) {
        add_tiles_init(kCbA, kCbB);
        add_tiles(kCbA, kCbB, 0, 1, 0);
    } else if (which == Case::Subtract) {
        sub_tiles_init(kCbA, kCbB);
        sub_tiles(kCbA, kCbB, 0, 1, 0);
    } else if (which == Case::MultiplyTwice) {
        mul_tiles_init(kCbA, kCbB);
        mul_tiles(kCbA, kCbB, 0, 1, 0);
        mul_tiles(kCbA, kCbB, 2, 3, 0);
    } else {
        add_tiles_init(kCbA, kCbB, true);
        add_tiles(kCbA, kCbB, 0, 1, 0);
        add_tiles(kCbA, kCbB, 2, 3, 0);
    }
    pack_first(kCbOut);
}

void matmul(bool transposed) {
    mm_init(kCbA, kCbB, kCbOut, transposed);
    tile_regs_acquire();
    matmul_tiles(kCbA, kCbB, 0, 0, 0);
    matmul_tiles(kCbA, kCbB, 1, 1, 0);
    pack_first(kCbOut);
}

void matmul_in_blocks() {
    // [2 x 2] tiles times [2 x 2] tiles, one step of the inner dimension after the other.
    mm_block_init(kCbA, kCbB, kCbOut, false, 2, 2, 2);
    tile_regs_acquire();
    for (uint32_t inner = 0; inner < 2; ++inner) {
        matmul_block(kCbA, kCbB, inner, inner * 2, 0, false, 2, 2, 2);
    }
    pack_first(kCbOut, 4);
}

void copy_reconfigured() {
    unary_op_init_common(kCbA, kCbOut);
    tile_regs_acquire();
    copy_tile(kCbA, 0, 0);
    copy_tile_to_dst_init_short_with_dt(kCbA, kCbFloat);
    copy_tile(kCbFloat, 1, 1);
    pack_first(kCbOut, 2);
    reconfig_data_format_srca(kCbFloat, kCbA);
    copy_tile_init(kCbA);
    pack_reconfig_data_format(kCbOut, kCbOutFloat);
    tile_regs_acquire();
    copy_tile(kCbA, 1, 0);
    pack_first(kCbOutFloat);
}

void typecast() {
    unary_op_init_common(kCbFloat, kCbOutInteger);
    typecast_tile_init<static_cast<uint32_t>(DataFormat::Float32),
                       static_cast<uint32_t>(DataFormat::Int32)>();
    tile_regs_acquire();
    copy_tile(kCbFloat, 0, 0);
    typecast_tile<static_cast<uint32_t>(DataFormat::Float32),
                  static_cast<uint32_t>(DataFormat::Int32)>(0);
    pack_first(kCbOutInteger);
}

void integer_sum() {
    unary_op_init_common(kCbInteger, kCbOutInteger);
    add_int_tile_init();
    tile_regs_acquire();
    copy_tile(kCbInteger, 0, 0);
    copy_tile(kCbInteger, 1, 1);
    add_int_tile<DataFormat::Int32>(0, 1, 0);
    pack_first(kCbOutInteger);
}

void vector_chain() {
    // 1 / (e^a + b)
    init_sfpu(kCbA, kCbOut);
    tile_regs_acquire();
    copy_tile(kCbA, 0, 0);
    copy_tile(kCbB, 0, 1);
    exp_tile_init();
    exp_tile(0);
    add_binary_tile_init();
    add_binary_tile(0, 1, 0);
    recip_tile_init();
    recip_tile(0);
    pack_first(kCbOut);
}

void pack_accumulated() {
    unary_op_init_common(kCbA, kCbOut);
    cb_reserve_back(kCbOut, 1);
    for (uint32_t tile = 0; tile < 3; ++tile) {
        tile_regs_acquire();
        copy_tile(kCbA, tile, 0);
        tile_regs_commit();
        tile_regs_wait();
        pack_tile<true>(0, kCbOut, 0);
        tile_regs_release();
        pack_reconfig_l1_acc(1);
    }
    pack_reconfig_l1_acc(0);
    cb_push_back(kCbOut, 1);
}

void pack_relu() {
    unary_op_init_common(kCbA, kCbOut);
    pack_relu_config(1);
    tile_regs_acquire();
    copy_tile(kCbA, 0, 0);
    pack_first(kCbOut);
    pack_relu_config(0);
}

void tilize() {
    compute_kernel_hw_startup(kCbA, kCbOut);
    tilize_init(kCbA, 4, kCbOut);
    cb_reserve_back(kCbOut, 4);
    tilize_block(kCbA, 4, kCbOut);
    cb_push_back(kCbOut, 4);
    tilize_uninit(kCbA, kCbOut);
}

void untilize() {
    compute_kernel_hw_startup(kCbA, kCbOut);
    untilize_init(kCbA);
    cb_reserve_back(kCbOut, 4);
    untilize_block(kCbA, 4, kCbOut);
    cb_push_back(kCbOut, 4);
    untilize_uninit(kCbA);
}

void pack_untilize() {
    compute_kernel_hw_startup(kCbA, kCbOut);
    pack_untilize_init<2, 4>(kCbA, kCbOut);
    cb_reserve_back(kCbOut, 4);
    pack_untilize_block<2, 4>(kCbA, 1, kCbOut, 0);
    cb_pop_front(kCbA, 2);
    pack_untilize_block<2, 4>(kCbA, 1, kCbOut, 1);
    cb_push_back(kCbOut, 4);
    pack_untilize_uninit(kCbOut);
}

/// Reserves before it pops: on the device unpacking frees the page that packing waits for.
void in_place() {
    init_sfpu(kCbA, kCbA);
    cb_wait_front(kCbA, 1);
    cb_reserve_back(kCbA, 1);
    tile_regs_acquire();
    copy_tile(kCbA, 0, 0);
    negative_tile_init();
    negative_tile(0);
    tile_regs_commit();
    cb_pop_front(kCbA, 1);
    tile_regs_wait();
    pack_tile(0, kCbA);
    tile_regs_release();
    cb_push_back(kCbA, 1);
}

void ahead_of_packing() {
    unary_op_init_common(kCbA, kCbOut);
    cb_reserve_back(kCbOut, 2);
    for (uint32_t tile = 0; tile < 2; ++tile) {
        tile_regs_acquire();
        copy_tile(kCbA, tile, 0);
        tile_regs_commit();
    }
    for (uint32_t tile = 0; tile < 2; ++tile) {
        tile_regs_wait();
        pack_tile(0, kCbOut);
        tile_regs_release();
    }
    cb_push_back(kCbOut, 2);
}

void old_register_calls() {
    unary_op_init_common(kCbA, kCbOut);
    acquire_dst();
    copy_tile(kCbA, 3, 0);
    cb_reserve_back(kCbOut, 1);
    pack_tile(0, kCbOut);
    cb_push_back(kCbOut, 1);
    release_dst();
}

void pack_out_of_order() {
    unary_op_init_common(kCbA, kCbOut);
    cb_reserve_back(kCbOut, 2);
    tile_regs_acquire();
    copy_tile(kCbA, 0, 0);
    copy_tile(kCbA, 1, 1);
    tile_regs_commit();
    tile_regs_wait();
    pack_tile<true>(0, kCbOut, 1);
    pack_tile<true>(1, kCbOut, 0);
    tile_regs_release();
    cb_push_back(kCbOut, 2);
}

void unary_broadcast_row() {
    unary_bcast_init<BroadcastType::ROW>(kCbA, kCbOut);
    tile_regs_acquire();
    unary_bcast<BroadcastType::ROW>(kCbA, 1, 0);
    pack_first(kCbOut);
}

void transpose() {
    transpose_wh_init(kCbA, kCbOut);
    tile_regs_acquire();
    transpose_wh_tile(kCbA, 1, 0);
    pack_first(kCbOut);
}

void copy_block_float() {
    unary_op_init_common(kCbBlock, kCbOutBlock);
    tile_regs_acquire();
    copy_tile(kCbBlock, 1, 0);
    pack_first(kCbOutBlock);
}

/// The first two faces of a tile, row by row.
void pack_face_rows() {
    unary_op_init_common(kCbA, kCbOut);
    tile_regs_acquire();
    copy_tile(kCbA, 0, 0);
    tile_regs_commit();
    tile_regs_wait();
    cb_reserve_back(kCbOut, 1);
    pack_rows_init(32);
    pack_rows(0, kCbOut);
    pack_rows_uninit();
    tile_regs_release();
    cb_push_back(kCbOut, 1);
}

void transpose_in_place() {
    unary_op_init_common(kCbA, kCbOut);
    tile_regs_acquire();
    copy_tile(kCbA, 1, 0);
    transpose_wh_dest_init_short();
    transpose_wh_dest(0);
    pack_first(kCbOut);
}

void block_maximum() {
    compute_kernel_hw_startup(kCbA, kCbScaler, kCbOut);
    reduce_block_max_row_init<4>();
    tile_regs_acquire();
    reduce_block_max_row<4>(kCbA, kCbScaler, 0, 0);
    pack_first(kCbOut);
    reduce_block_max_row_uninit(kCbA);
}

/// Means and variances of the columns of two tiles.
void welford() {
    unary_op_init_common(kCbA, kCbOutFloat);
    constexpr std::array<uint32_t, 0> kNoTable{};
    welford_init();
    tile_regs_acquire();
    copy_tile(kCbA, 0, 0);
    welford_update<0>(0, 0, kNoTable);
    copy_tile(kCbA, 1, 0);
    welford_update<0>(0, 32, kNoTable);
    welford_finalize_to_row<0>(1, 63, kNoTable);
    tile_regs_commit();
    tile_regs_wait();
    cb_reserve_back(kCbOutFloat, 2);
    pack_tile(1, kCbOutFloat);
    pack_tile(2, kCbOutFloat);
    tile_regs_release();
    cb_push_back(kCbOutFloat, 2);
}

/// a > 0 ? b : 2
void choose() {
    unary_op_init_common(kCbA, kCbOut);
    tile_regs_acquire();
    copy_tile(kCbA, 0, 0);
    copy_tile(kCbB, 0, 1);
    fill_tile_init();
    fill_tile(2, 2.0f);
    gtz_tile_init();
    gtz_tile(0);
    where_tile_init();
    where_tile<DataFormat::Float16_b>(0, 1, 2, 0);
    pack_first(kCbOut);
}

/// By value of Case.
void (*const kCases[])() = {
    [] { binary_tile(Case::Add); },
    [] { binary_tile(Case::Subtract); },
    [] { binary_tile(Case::MultiplyTwice); },
    [] { binary_tile(Case::AddAccumulated); },
    broadcast<ELWMUL, BroadcastType::COL>,
    broadcast<ELWADD, BroadcastType::ROW>,
    broadcast<ELWSUB, BroadcastType::SCALAR>,
    reuse_destination<EltwiseBinaryReuseDestType::DEST_TO_SRCA>,
    reuse_destination<EltwiseBinaryReuseDestType::DEST_TO_SRCB>,
    unary_broadcast_row,
    [] { matmul(false); },
    [] { matmul(true); },
    matmul_in_blocks,
    reduce_two<PoolType::SUM, ReduceDim::REDUCE_ROW>,
    reduce_two<PoolType::AVG, ReduceDim::REDUCE_COL>,
    reduce_two<PoolType::SUM, ReduceDim::REDUCE_SCALAR>,
    reduce_two<PoolType::MAX, ReduceDim::REDUCE_ROW>,
    transpose,
    copy_reconfigured,
    typecast,
    integer_sum,
    vector_chain,
    pack_accumulated,
    pack_relu,
    tilize,
    untilize,
    pack_untilize,
    in_place,
    ahead_of_packing,
    old_register_calls,
    copy_block_float,
    pack_out_of_order,
    pack_face_rows,
    transpose_in_place,
    block_maximum,
    welford,
    choose,
};

}  // namespace

void kernel_main() {
    cb_wait_front(kCbA, 4);
    cb_wait_front(kCbB, 4);
    cb_wait_front(kCbScaler, 1);
    cb_wait_front(kCbFloat, 2);
    cb_wait_front(kCbInteger, 2);
    cb_wait_front(kCbBlock, 2);
    kCases[get_arg_val<uint32_t>(0)]();
}
