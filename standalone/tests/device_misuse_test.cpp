// Misuses of compute kernels: each is reported at its line.

#include "device_compute_testing.hpp"

using namespace compute_testing;
using tt::tt_metal::ComputeConfig;

namespace {

struct MisuseRow {
    Misuse misuse;
    /// A part of the message.
    const char* text;
    /// The misuse needs the 32-bit mode of DST.
    bool wide = false;
};

const std::vector<MisuseRow> kMisuses{
    {Misuse::MathWithoutAcquire, "DST is not acquired"},
    {Misuse::MathAfterCommit, "math comes after tile_regs_commit"},
    {Misuse::AcquireTwice, "DST is acquired since line"},
    {Misuse::CommitWithoutAcquire, "tile_regs_commit without tile_regs_acquire"},
    {Misuse::WaitForNothing, "there is nothing to wait for"},
    {Misuse::WaitTwice, "tile_regs_release is missing"},
    {Misuse::ReleaseWithoutWait, "tile_regs_release without tile_regs_wait"},
    {Misuse::ReleaseBeforeCommit, "tile_regs_commit is missing"},
    {Misuse::PackWithoutWait, "tile_regs_wait is missing"},
    {Misuse::MathAfterEarlyPack, "tile 0 of DST is packed already"},
    {Misuse::PackNothing, "tile 1 of DST holds nothing"},
    {Misuse::ReadNothing, "tile 0 of DST holds nothing"},
    {Misuse::TileBeyondDestination, "there is no tile 8 in DST: it has 8 tiles"},
    {Misuse::TileBeyondDestination, "there is no tile 4 in DST: it has 4 tiles", true},
    {Misuse::EndAcquired, "the kernel ends with DST acquired"},
    {Misuse::EndUnreleased, "tile_regs_release is missing"},
    {Misuse::EndUnpacked, "results in DST that nothing packs"},
    {Misuse::NoStartup, "the format of source A was never set"},
    {Misuse::NoInit, "add_tiles: math was never set up; call add_tiles_init first"},
    {Misuse::WrongInit, "add_tiles: math is set up by binary_tiles_init"},
    {Misuse::WrongBroadcast, "init_bcast<EltwiseBinaryType::ELWADD, BroadcastType::ROW>"},
    {Misuse::CopyAfterBinary, "call copy_tile_init first"},
    {Misuse::MatmulAfterCopy, "call mm_init_short or mm_block_init_short first"},
    {Misuse::BlockOfOtherSize, "a block of 2 x 1 tiles, but the initialisation"},
    {Misuse::SourceFormat, "holds Float32, but source A is set to Float16_b"},
    {Misuse::PackFormat, "call pack_reconfig_data_format"},
    {Misuse::ReconfigureSkipped, "call reconfig_data_format_srca"},
    {Misuse::TileBeyondWaited, "circular buffer 0"},
    {Misuse::PackBeyondReserved, "circular buffer 20"},
    {Misuse::AbsentBuffer, "circular buffer 31"},
    {Misuse::SfpuWithoutInit, "exp_tile without exp_tile_init before it", true},
    {Misuse::SfpuConstantsLost, "were overwritten by recip_tile_init", true},
    {Misuse::TypecastMismatch, "typecast_tile_init was for Float32 to Float16_b", true},
    {Misuse::FloatsFromIntegers, "exp_tile reads tile 0 of DST as floats", true},
    {Misuse::IntegersIntoFloats, "DST holds integers", true},
    {Misuse::WideIntoNarrow, "does not fit DST, which has 16 bits"},
    {Misuse::IntegersInMatrixEngine, "the matrix engine computes with floats only", true},
    {Misuse::ReduceMaskLeft, "reduce_uninit is missing"},
    {Misuse::ReduceOtherDimension, "call reduce_init of the same type and dimension"},
    {Misuse::UntilizeLeft, "pack_untilize_uninit is missing"},
    {Misuse::TilizeInside, "tilize_block takes DST itself"},
    {Misuse::MaskElsewhere, "the mask of tile 0 has to be in tile 1, not 2", true},
    {Misuse::ChooseWideInNarrow, "where_tile takes tiles of DST as Float32, but DST has 16 bits"},
    {Misuse::CopyNarrowInWide,
     "copy_dest_values takes tiles of DST as Float16_b, but DST has 32 bits", true},
    {Misuse::ColumnsAfterRows, "recorded over the instructions of sfpu_reduce_init", true},
    {Misuse::ReduceOtherPool, "but sfpu_reduce_init was for PoolType::SUM", true},
    {Misuse::CopyOtherWay, "which is unpacked through a source register", true},
    {Misuse::ReuseUndecided, "choose DEST_TO_SRCA or DEST_TO_SRCB"},
    {Misuse::BroadcastElsewhere, "repeated in the tile that math addressed last", true},
    {Misuse::FullInitInside, "unary_bcast_init is a full initialisation"},
    {Misuse::FullInitBeforeRelease, "mm_init is a full initialisation"},
    {Misuse::MaskLeftBehind, "reduce_uninit is missing"},
    {Misuse::TilizeLeft, "tilize_uninit is missing"},
    {Misuse::BlockMaximumLeft, "reduce_block_max_row_uninit is missing"},
};

}  // namespace

int main() {
    CaseBuffers buffers;
    for (const MisuseRow& row : kMisuses) {
        ComputeConfig config;
        config.fp32_dest_acc_en = row.wide;
        const auto call = [&] {
            run_compute(buffers.all(), kernel_file("compute_misuses.cpp"),
                        {static_cast<std::uint32_t>(row.misuse)}, config);
        };
        expect_refused(call, row.text);
        expect_refused(call, "compute_misuses.cpp:");
    }
}
