// Cases of kernels/compute_cases.cpp and kernels/compute_misuses.cpp: runtime argument 0 selects
// one of these. Shared by the kernels and the tests that run them.
#pragma once

#include <cstdint>

// Circular buffers of the tests; their tiles are in place when the kernel starts.
constexpr std::uint32_t kCbA = 0;            // 4 tiles of Float16_b
constexpr std::uint32_t kCbB = 1;            // 4 tiles of Float16_b
constexpr std::uint32_t kCbScaler = 2;       // 1 tile of Float16_b
constexpr std::uint32_t kCbFloat = 3;        // 2 tiles of Float32
constexpr std::uint32_t kCbInteger = 4;      // 2 tiles of Int32
constexpr std::uint32_t kCbBlock = 5;        // 2 tiles of Bfp8_b
constexpr std::uint32_t kCbOut = 16;         // 4 tiles of Float16_b
constexpr std::uint32_t kCbOutFloat = 17;    // 4 tiles of Float32
constexpr std::uint32_t kCbOutInteger = 18;  // 4 tiles of Int32
constexpr std::uint32_t kCbOutBlock = 19;    // 4 tiles of Bfp8_b
constexpr std::uint32_t kCbOwn = 20;     // 2 tiles of Float16_b that are no buffer of the host's
constexpr std::uint32_t kCbAbsent = 31;  // does not exist

enum class Case : std::uint32_t {
    Add,
    Subtract,
    MultiplyTwice,
    AddAccumulated,
    BroadcastColumns,
    BroadcastRows,
    BroadcastScalar,
    ReuseAsA,
    ReuseAsB,
    UnaryBroadcastRow,
    Matmul,
    MatmulTransposed,
    MatmulBlock,
    ReduceRow,
    ReduceColumn,
    ReduceScalar,
    ReduceMaximum,
    Transpose,
    CopyReconfigured,
    Typecast,
    IntegerSum,
    VectorChain,
    PackAccumulated,
    PackRelu,
    Tilize,
    Untilize,
    PackUntilize,
    InPlace,
    AheadOfPacking,
    OldRegisterCalls,
    BlockFloat,
    PackOutOfOrder,
    PackRows,
    TransposeInPlace,
    BlockMaximum,
    Welford,
    Choose,
};

enum class Misuse : std::uint32_t {
    MathWithoutAcquire,
    MathAfterCommit,
    AcquireTwice,
    CommitWithoutAcquire,
    WaitForNothing,
    WaitTwice,
    ReleaseWithoutWait,
    ReleaseBeforeCommit,
    PackWithoutWait,
    MathAfterEarlyPack,
    PackNothing,
    ReadNothing,
    TileBeyondDestination,
    EndAcquired,
    EndUnreleased,
    EndUnpacked,
    NoStartup,
    NoInit,
    WrongInit,
    WrongBroadcast,
    CopyAfterBinary,
    MatmulAfterCopy,
    BlockOfOtherSize,
    SourceFormat,
    PackFormat,
    ReconfigureSkipped,
    TileBeyondWaited,
    PackBeyondReserved,
    AbsentBuffer,
    SfpuWithoutInit,
    SfpuConstantsLost,
    TypecastMismatch,
    FloatsFromIntegers,
    IntegersIntoFloats,
    WideIntoNarrow,
    IntegersInMatrixEngine,
    ReduceMaskLeft,
    ReduceOtherDimension,
    UntilizeLeft,
    TilizeInside,
    MaskElsewhere,
    ChooseWideInNarrow,
    CopyNarrowInWide,
    ColumnsAfterRows,
    ReduceOtherPool,
    CopyOtherWay,
    ReuseUndecided,
    BroadcastElsewhere,
    FullInitInside,
    FullInitBeforeRelease,
    TilizeLeft,
    MaskLeftBehind,
    BlockMaximumLeft,
};
