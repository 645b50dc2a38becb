/// The enumerations of tt-metal's compute kernel API, with its names and values.
#pragma once

#include <cstdint>

#include "tt-metalium/tt_backend_api_types.hpp"

/// Device code uses the formats of circular buffers without a namespace.
using DataFormat = tt::DataFormat;

namespace ckernel {

/// The faces of a tile that a vector engine operation applies to: the upper, the left, all.
enum VectorMode { None = 0, R = 1, C = 2, RC = 4, RC_custom = 6, Invalid = 0xFF };

enum ReduceDim { REDUCE_ROW, REDUCE_COL, REDUCE_SCALAR };

enum PoolType { SUM, AVG, MAX, MIN };

enum class DataCopyType : std::uint8_t { A2D, B2D };

enum EltwiseBinaryType { ELWMUL, ELWDIV, ELWADD, ELWSUB, ELWLESS };

enum class EltwiseBinaryReuseDestType { NONE = 0, DEST_TO_SRCA = 1, DEST_TO_SRCB = 2 };

enum DstSync { SyncHalf = 0, SyncFull = 1 };

enum BroadcastType { NONE = 0x0, COL = 0x1, ROW = 0x2, SCALAR = 0x3 };

enum ReluType { NO_RELU, ZERO_RELU, MIN_THRESHOLD_RELU, MAX_THRESHOLD_RELU };

enum class MathFidelity : std::uint8_t { LoFi = 0, HiFi2 = 2, HiFi3 = 3, HiFi4 = 4 };

enum class RoundingMode { None, Trunc, Floor };

enum class Operand : std::uint8_t { SRCA = 0x1, SRCB = 0x2, PACK = 0x4 };

constexpr bool UnpackToDestEn = true;
constexpr bool UnpackToDestDis = false;

/// Constants of the vector engine that appear in signatures.
struct p_sfpu {
    static constexpr std::uint32_t kCONST_1_FP16B = 0x3F80;
};

}  // namespace ckernel
