// Misuses of the compute kernel API, one for each value of Misuse. On the device each gives wrong
// results or hangs.

#include "api/compute/add_int_sfpu.h"
#include "api/compute/bcast.h"
#include "api/compute/common.h"
#include "api/compute/compute_kernel_api.h"
#include "api/compute/copy_dest_values.h"
#include "api/compute/eltwise_binary.h"
#include "api/compute/eltwise_unary/eltwise_unary.h"
#include "api/compute/eltwise_unary/exp.h"
#include "api/compute/eltwise_unary/recip.h"
#include "api/compute/eltwise_unary/typecast.h"
#include "api/compute/eltwise_unary/where.h"
#include "api/compute/mask.h"
#include "api/compute/matmul.h"
#include "api/compute/pack_untilize.h"
#include "api/compute/reduce.h"
#include "api/compute/reduce_custom.h"
#include "api/compute/tile_move_copy.h"
#include "api/compute/tilize.h"
#include "compute_cases.hpp"

namespace {

constexpr auto kFloat32 = static_cast<uint32_t>(DataFormat::Float32);
constexpr auto kFloat16 = static_cast<uint32_t>(DataFormat::Float16_b);
constexpr auto kInt32 = static_cast<uint32_t>(DataFormat::Int32);

void commit_and_pack(uint32_t cb, uint32_t tile = 0) {
    tile_regs_commit();
    tile_regs_wait();
    cb_reserve_back(cb, 1);
    pack_tile(tile, cb);
    tile_regs_release();
    cb_push_back(cb, 1);
}

/// The order of calls on the destination register.
void misuse_destination(Misuse which) {
    unary_op_init_common(kCbA, kCbOut);
    if (which != Misuse::MathWithoutAcquire && which != Misuse::CommitWithoutAcquire &&
        which != Misuse::WaitForNothing && which != Misuse::ReleaseWithoutWait) {
        tile_regs_acquire();
    }
    switch (which) {
        case Misuse::MathWithoutAcquire:
            return copy_tile(kCbA, 0, 0);
        case Misuse::MathAfterCommit:
            tile_regs_commit();
            return copy_tile(kCbA, 0, 0);
        case Misuse::AcquireTwice:
            return tile_regs_acquire();
        case Misuse::CommitWithoutAcquire:
            return tile_regs_commit();
        case Misuse::WaitForNothing:
            return tile_regs_wait();
        case Misuse::WaitTwice:
            tile_regs_commit();
            tile_regs_wait();
            return tile_regs_wait();
        case Misuse::ReleaseWithoutWait:
            return tile_regs_release();
        case Misuse::ReleaseBeforeCommit:
            tile_regs_wait();
            return tile_regs_release();
        case Misuse::PackWithoutWait:
            copy_tile(kCbA, 0, 0);
            tile_regs_commit();
            cb_reserve_back(kCbOut, 1);
            return pack_tile(0, kCbOut);
        case Misuse::MathAfterEarlyPack:
            copy_tile(kCbA, 0, 0);
            tile_regs_wait();
            cb_reserve_back(kCbOut, 1);
            pack_tile(0, kCbOut);
            return copy_tile(kCbA, 1, 0);
        case Misuse::PackNothing:
            copy_tile(kCbA, 0, 0);
            return commit_and_pack(kCbOut, 1);
        case Misuse::ReadNothing:
            exp_tile_init();
            return exp_tile(0);
        case Misuse::TileBeyondDestination:
            return copy_tile(kCbA, 0, DST_ACCUM_MODE ? 4 : 8);
        case Misuse::EndUnreleased:
            tile_regs_commit();
            return tile_regs_wait();
        case Misuse::EndUnpacked:
            return tile_regs_commit();
        default:  // EndAcquired
            return;
    }
}

/// Initialisations that do not match the following operation.
void misuse_init(Misuse which) {
    binary_op_init_common(kCbA, kCbB, kCbOut);
    tile_regs_acquire();
    switch (which) {
        case Misuse::NoInit:
            return add_tiles(kCbA, kCbB, 0, 0, 0);
        case Misuse::WrongInit:
            mul_tiles_init(kCbA, kCbB);
            return add_tiles(kCbA, kCbB, 0, 0, 0);
        case Misuse::WrongBroadcast:
            add_bcast_cols_init_short(kCbA, kCbB);
            return add_tiles_bcast_rows(kCbA, kCbB, 0, 0, 0);
        case Misuse::CopyAfterBinary:
            add_tiles_init(kCbA, kCbB);
            return copy_tile(kCbA, 0, 0);
        case Misuse::MatmulAfterCopy:
            copy_tile_init(kCbA);
            return matmul_tiles(kCbA, kCbB, 0, 0, 0);
        case Misuse::BlockOfOtherSize:
            mm_block_init_short(kCbA, kCbB, false, 2, 1, 1);
            return matmul_block(kCbA, kCbB, 0, 0, 0, false, 1, 2, 1);
        case Misuse::ReduceOtherDimension:
            reduce_init<PoolType::SUM, ReduceDim::REDUCE_ROW>(kCbA, kCbScaler, kCbOut);
            return reduce_tile<PoolType::SUM, ReduceDim::REDUCE_COL>(kCbA, kCbScaler, 0, 0, 0);
        case Misuse::ReduceMaskLeft:
            reduce_init<PoolType::SUM, ReduceDim::REDUCE_ROW>(kCbA, kCbScaler, kCbOut);
            copy_tile_init(kCbA);
            copy_tile(kCbA, 0, 0);
            return commit_and_pack(kCbOut);
        case Misuse::UntilizeLeft:
            pack_untilize_dest_init<1>(kCbOut);
            copy_tile_init(kCbA);
            copy_tile(kCbA, 0, 0);
            return commit_and_pack(kCbOut);
        case Misuse::TilizeInside:
            tilize_init(kCbA, 1, kCbOut);
            return tilize_block(kCbA, 1, kCbOut);
        case Misuse::BroadcastElsewhere:
            reconfig_data_format(kCbInteger, kCbInteger);
            llk_unpack_A_init<BroadcastType::ROW, false, EltwiseBinaryReuseDestType::NONE, true>();
            llk_math_eltwise_unary_datacopy_init<DataCopyType::A2D, true, BroadcastType::ROW>();
            return unary_bcast<BroadcastType::ROW>(kCbInteger, 0, 1);
        case Misuse::FullInitInside:
            unary_bcast_init<BroadcastType::ROW>(kCbA, kCbOut);
            return unary_bcast<BroadcastType::ROW>(kCbA, 0, 0);
        case Misuse::FullInitBeforeRelease:
            copy_tile_init(kCbA);
            copy_tile(kCbA, 0, 0);
            tile_regs_commit();
            mm_init(kCbA, kCbB, kCbOut);
            return tile_regs_wait();
        case Misuse::MaskLeftBehind:
            reduce_init<PoolType::SUM, ReduceDim::REDUCE_ROW>(kCbA, kCbScaler, kCbOut);
            reduce_tile<PoolType::SUM, ReduceDim::REDUCE_ROW>(kCbA, kCbScaler, 0, 0, 0);
            commit_and_pack(kCbOut);
            return copy_tile_init(kCbA);
        case Misuse::TilizeLeft:
            tilize_init(kCbA, 1, kCbOut);
            copy_tile_init(kCbA);
            return copy_tile(kCbA, 0, 0);
        case Misuse::BlockMaximumLeft:
            reduce_block_max_row_init<1>();
            return copy_tile_init(kCbA);
        default:  // ReuseUndecided
            copy_tile_init(kCbA);
            copy_tile(kCbA, 0, 0);
            binary_dest_reuse_tiles_init(kCbB);
            return binary_dest_reuse_tiles(kCbB, 0, 0);
    }
}

/// Formats and pages of circular buffers.
void misuse_buffer(Misuse which) {
    if (which == Misuse::NoStartup) {
        copy_tile_init(kCbA);
        tile_regs_acquire();
        return copy_tile(kCbA, 0, 0);
    }
    unary_op_init_common(kCbA, kCbOut);
    tile_regs_acquire();
    switch (which) {
        case Misuse::SourceFormat:
            copy_tile_init(kCbFloat);
            return copy_tile(kCbFloat, 0, 0);
        case Misuse::PackFormat:
            copy_tile(kCbA, 0, 0);
            return commit_and_pack(kCbOutFloat);
        case Misuse::ReconfigureSkipped:
            // The formats of these two are the same, so nothing changes.
            copy_tile_to_dst_init_short_with_dt(kCbFloat, kCbFloat);
            return copy_tile(kCbFloat, 0, 0);
        case Misuse::TileBeyondWaited:
            return copy_tile(kCbA, 4, 0);
        case Misuse::PackBeyondReserved:
            copy_tile(kCbA, 0, 0);
            tile_regs_commit();
            tile_regs_wait();
            cb_reserve_back(kCbOwn, 1);
            pack_tile(0, kCbOwn);
            return pack_tile(0, kCbOwn);
        case Misuse::IntegersInMatrixEngine:
            reconfig_data_format(kCbInteger, kCbInteger);
            add_tiles_init(kCbInteger, kCbInteger);
            return add_tiles(kCbInteger, kCbInteger, 0, 1, 0);
        case Misuse::WideIntoNarrow:
            reconfig_data_format_srca(kCbInteger);
            return copy_tile(kCbInteger, 0, 0);
        default:  // AbsentBuffer
            return copy_tile(kCbAbsent, 0, 0);
    }
}

/// Operations of the vector engine.
void misuse_vector_engine(Misuse which) {
    unary_op_init_common(kCbFloat, kCbOutFloat);
    tile_regs_acquire();
    copy_tile(kCbFloat, 0, 0);
    copy_tile(kCbFloat, 1, 1);
    switch (which) {
        case Misuse::SfpuWithoutInit:
            return exp_tile(0);
        case Misuse::SfpuConstantsLost:
            exp_tile_init();
            recip_tile_init();
            recip_tile(0);
            return exp_tile(0);
        case Misuse::TypecastMismatch:
            typecast_tile_init<kFloat32, kFloat16>();
            return typecast_tile<kFloat32, kInt32>(0);
        case Misuse::FloatsFromIntegers:
            typecast_tile_init<kFloat32, kInt32>();
            typecast_tile<kFloat32, kInt32>(0);
            exp_tile_init();
            return exp_tile(0);
        case Misuse::IntegersIntoFloats:
            typecast_tile_init<kFloat32, kInt32>();
            typecast_tile<kFloat32, kInt32>(0);
            return commit_and_pack(kCbOutFloat);
        case Misuse::ChooseWideInNarrow:
            where_tile_init();
            return where_tile<DataFormat::Float32>(0, 1, 0, 0);
        case Misuse::CopyNarrowInWide:
            copy_dest_values_init();
            return copy_dest_values<DataFormat::Float16_b>(0, 1);
        case Misuse::ColumnsAfterRows:
            sfpu_reduce_init<PoolType::MAX, DataFormat::Float32>();
            sfpu_reduce<PoolType::MAX, DataFormat::Float32, ReduceDim::REDUCE_ROW>(0);
            sfpu_reduce<PoolType::MAX, DataFormat::Float32, ReduceDim::REDUCE_ROW>(1);
            return sfpu_reduce<PoolType::MAX, DataFormat::Float32>(0);
        case Misuse::ReduceOtherPool:
            sfpu_reduce_init<PoolType::SUM, DataFormat::Float32>();
            return sfpu_reduce<PoolType::MAX, DataFormat::Float32>(0);
        case Misuse::CopyOtherWay:
            // Integers of 32 bits are unpacked to DST, floats of 16 bits through source A.
            reconfig_data_format_srca(kCbInteger);
            copy_tile_init(kCbA);
            return copy_tile(kCbInteger, 0, 0);
        default:  // MaskElsewhere
            mask_tile_init();
            copy_tile(kCbFloat, 1, 2);
            return mask_tile(0, 2);
    }
}

}  // namespace

void kernel_main() {
    cb_wait_front(kCbA, 4);
    cb_wait_front(kCbB, 4);
    cb_wait_front(kCbScaler, 1);
    cb_wait_front(kCbFloat, 2);
    cb_wait_front(kCbInteger, 2);
    const auto which = static_cast<Misuse>(get_arg_val<uint32_t>(0));
    if (which <= Misuse::EndUnpacked) {
        return misuse_destination(which);
    }
    switch (which) {
        case Misuse::NoInit:
        case Misuse::WrongInit:
        case Misuse::WrongBroadcast:
        case Misuse::CopyAfterBinary:
        case Misuse::MatmulAfterCopy:
        case Misuse::BlockOfOtherSize:
        case Misuse::ReduceOtherDimension:
        case Misuse::ReduceMaskLeft:
        case Misuse::UntilizeLeft:
        case Misuse::TilizeInside:
        case Misuse::ReuseUndecided:
        case Misuse::BroadcastElsewhere:
        case Misuse::FullInitInside:
        case Misuse::FullInitBeforeRelease:
        case Misuse::MaskLeftBehind:
        case Misuse::TilizeLeft:
        case Misuse::BlockMaximumLeft:
            return misuse_init(which);
        case Misuse::SfpuWithoutInit:
        case Misuse::SfpuConstantsLost:
        case Misuse::TypecastMismatch:
        case Misuse::FloatsFromIntegers:
        case Misuse::IntegersIntoFloats:
        case Misuse::MaskElsewhere:
        case Misuse::ChooseWideInNarrow:
        case Misuse::CopyNarrowInWide:
        case Misuse::ColumnsAfterRows:
        case Misuse::ReduceOtherPool:
        case Misuse::CopyOtherWay:
            return misuse_vector_engine(which);
        default:
            return misuse_buffer(which);
    }
}
