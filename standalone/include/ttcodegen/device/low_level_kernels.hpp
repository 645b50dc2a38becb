/// Initialisations of low-level kernels (LLK) that compute kernels call directly, with the names
/// and parameters of tt-metal 0.70.1 (tt_metal/hw/ckernels/*/metal/llk_api). Each sets up one
/// processor for one operation: half of a short initialisation.
#pragma once

#include "api/compute/common_globals.h"

/// The unpacked data format of a circular buffer's elements, as a DataFormat.
inline std::uint32_t get_operand_dst_format(const std::uint32_t operand) {
    const ttcodegen::device::Processor& processor = ttcodegen::device::current();
    const auto format = static_cast<DataFormat>(processor.circular_buffers[operand].data_format);
    const bool cut =
        format == DataFormat::Float32 && !processor.compute_settings->unpack_to_dest_fp32[operand];
    return static_cast<std::uint32_t>(cut ? DataFormat::Tf32 : format);
}

/// Sets up unpacking of a copy, optionally transposed or with a row, column or element broadcast.
template <ckernel::BroadcastType type = ckernel::BroadcastType::NONE, bool acc_to_dest = false,
          ckernel::EltwiseBinaryReuseDestType reuse = ckernel::EltwiseBinaryReuseDestType::NONE,
          bool unpack_to_dest = false>
inline void llk_unpack_A_init(const std::uint32_t transpose_of_faces = 0,
                              const std::uint32_t within_face_16x16_transpose = 0,
                              const std::uint32_t operand = ttcodegen::device::kNoOperand,
                              TTCODEGEN_HERE) {
    static_assert(!acc_to_dest && reuse == ckernel::EltwiseBinaryReuseDestType::NONE,
                  "The emulated device knows this initialisation for copies only");
    using namespace ttcodegen::device;
    FpuParameters parameters;
    parameters.transpose_faces = transpose_of_faces != 0;
    parameters.transpose_within_faces = within_face_16x16_transpose != 0;
    parameters.operand = operand;
    constexpr auto kind =
        type == ckernel::BroadcastType::NONE ? FpuOperation::Copy : FpuOperation::UnaryBroadcast;
    prepare_fpu(fpu_mode(kind, type), "llk_unpack_A_init", here, parameters,
                {.unpack = true, .math = false});
}

namespace ckernel {

enum DstTileShape { Tile32x32 = 0, Tile32x16 = 1, Tile16x16 = 2 };
enum UnpackDestination { SrcRegs = 0, DestReg = 1 };

namespace math {

/// Has math address a tile of the destination register.
template <DstTileShape shape, UnpackDestination destination>
inline void set_dst_write_addr(const std::uint32_t tile, TTCODEGEN_HERE) {
    static_assert(shape == Tile32x32 && destination == SrcRegs,
                  "The emulated device addresses whole tiles, by math");
    using namespace ttcodegen::device;
    Processor& processor = current();
    compute_of(processor).address(processor, tile, here);
}

}  // namespace math
}  // namespace ckernel

/// Sets up math for the same.
template <ckernel::DataCopyType source, bool fp32_dest_acc_en,
          ckernel::BroadcastType type = ckernel::BroadcastType::NONE>
inline void llk_math_eltwise_unary_datacopy_init(const std::uint32_t = 0, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    constexpr auto kind =
        type == ckernel::BroadcastType::NONE ? FpuOperation::Copy : FpuOperation::UnaryBroadcast;
    prepare_fpu(fpu_mode(kind, type), "llk_math_eltwise_unary_datacopy_init", here, {},
                {.unpack = false, .math = true});
}
