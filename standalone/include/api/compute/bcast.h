#pragma once

#include "api/compute/common.h"
#include "api/compute/sentinel/compute_kernel_sentinel.h"
#include "ttcodegen/device/low_level_kernels.hpp"

namespace ckernel {

template <BroadcastType bcast_type>
ALWI void unary_bcast_init(std::uint32_t icb, std::uint32_t ocb, std::uint32_t = __builtin_LINE(),
                           TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    configure_formats(icb, icb, ocb, "unary_bcast_init", here);
    prepare_fpu(fpu_mode(FpuOperation::UnaryBroadcast, bcast_type), "unary_bcast_init", here,
                {.operand = icb});
}

/// Of releases with compute_kernel_hw_startup in place of full initialisations: a short one.
template <BroadcastType bcast_type>
ALWI void unary_bcast_init(std::uint32_t icb, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    prepare_fpu(fpu_mode(FpuOperation::UnaryBroadcast, bcast_type), "unary_bcast_init", here,
                {.operand = icb});
}

template <BroadcastType bcast_type>
ALWI void unary_bcast(std::uint32_t icb, std::uint32_t in_tile_index, std::uint32_t dst_tile_index,
                      TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    Processor& processor = current();
    compute_of(processor).copy(processor, fpu_mode(FpuOperation::UnaryBroadcast, bcast_type), icb,
                               in_tile_index, dst_tile_index, here);
}

template <BroadcastType bcast_type>
ALWI void unary_bcast_uninit(std::uint32_t, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    prepare_fpu(fpu_mode(FpuOperation::None), "unary_bcast_uninit", here);
}

/// Sets up only the state that differs; for the same buffers twice, unpacking and math.
template <BroadcastType old_bcast_type, BroadcastType new_bcast_type>
void reconfigure_unary_bcast(std::uint32_t old_icb, std::uint32_t new_icb, std::uint32_t old_ocb,
                             std::uint32_t new_ocb, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    reconfigure_format(FormatRegister::SourceA, old_icb, new_icb, here);
    reconfigure_format(FormatRegister::SourceB, old_icb, new_icb, here);
    reconfigure_format(FormatRegister::Pack, old_ocb, new_ocb, here);
    prepare_fpu(fpu_mode(FpuOperation::UnaryBroadcast, new_bcast_type), "reconfigure_unary_bcast",
                here);
}

/// Full initialisation for an operation that broadcasts a column, a row or an element of its second
/// operand.
template <EltwiseBinaryType tBcastOp, BroadcastType tBcastDim>
void init_bcast(std::uint32_t icb0, std::uint32_t icb1, std::uint32_t ocb,
                std::uint32_t = __builtin_LINE(), TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    configure_formats(icb0, icb1, ocb, "init_bcast", here);
    prepare_fpu(fpu_mode(binary_operation<tBcastOp>(), tBcastDim), "init_bcast", here);
}

template <EltwiseBinaryType tBcastOp, BroadcastType tBcastDim>
ALWI void bcast_init(std::uint32_t, std::uint32_t, std::uint32_t = __builtin_LINE(),
                     TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    prepare_fpu(fpu_mode(binary_operation<tBcastOp>(), tBcastDim), "bcast_init", here);
}

template <EltwiseBinaryType tBcastOp, BroadcastType tBcastDim>
ALWI void any_tiles_bcast(std::uint32_t icb0, std::uint32_t icb1, std::uint32_t itile0,
                          std::uint32_t itile1, std::uint32_t idst, std::uint32_t bcast_row_idx = 0,
                          TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    Processor& processor = current();
    compute_of(processor).binary(processor, fpu_mode(binary_operation<tBcastOp>(), tBcastDim), icb0,
                                 icb1, itile0, itile1, idst, bcast_row_idx, here);
}

#define TTCODEGEN_TILES_BCAST(function, operation)                                                \
    template <BroadcastType tBcastDim>                                                            \
    ALWI void function(std::uint32_t icb0, std::uint32_t icb1, std::uint32_t itile0,              \
                       std::uint32_t itile1, std::uint32_t idst, std::uint32_t bcast_row_idx = 0, \
                       TTCODEGEN_HERE) {                                                          \
        any_tiles_bcast<operation, tBcastDim>(icb0, icb1, itile0, itile1, idst, bcast_row_idx,    \
                                              here);                                              \
    }
TTCODEGEN_TILES_BCAST(add_tiles_bcast, ELWADD);
TTCODEGEN_TILES_BCAST(sub_tiles_bcast, ELWSUB);
TTCODEGEN_TILES_BCAST(mul_tiles_bcast, ELWMUL);
#undef TTCODEGEN_TILES_BCAST

#define TTCODEGEN_TILES_BCAST_OF(function, operation, dimension)                                  \
    ALWI void function(std::uint32_t icb0, std::uint32_t icb1, std::uint32_t itile0,              \
                       std::uint32_t itile1, std::uint32_t idst, TTCODEGEN_HERE) {                \
        any_tiles_bcast<operation, BroadcastType::dimension>(icb0, icb1, itile0, itile1, idst, 0, \
                                                             here);                               \
    }
TTCODEGEN_TILES_BCAST_OF(add_tiles_bcast_cols, ELWADD, COL);
TTCODEGEN_TILES_BCAST_OF(sub_tiles_bcast_cols, ELWSUB, COL);
TTCODEGEN_TILES_BCAST_OF(mul_tiles_bcast_cols, ELWMUL, COL);
TTCODEGEN_TILES_BCAST_OF(add_tiles_bcast_scalar, ELWADD, SCALAR);
TTCODEGEN_TILES_BCAST_OF(sub_tiles_bcast_scalar, ELWSUB, SCALAR);
TTCODEGEN_TILES_BCAST_OF(mul_tiles_bcast_scalar, ELWMUL, SCALAR);
#undef TTCODEGEN_TILES_BCAST_OF

#define TTCODEGEN_TILES_BCAST_ROWS(function, operation)                                           \
    ALWI void function(std::uint32_t icb0, std::uint32_t icb1, std::uint32_t itile0,              \
                       std::uint32_t itile1, std::uint32_t idst, std::uint32_t bcast_row_idx = 0, \
                       TTCODEGEN_HERE) {                                                          \
        any_tiles_bcast<operation, BroadcastType::ROW>(icb0, icb1, itile0, itile1, idst,          \
                                                       bcast_row_idx, here);                      \
    }
TTCODEGEN_TILES_BCAST_ROWS(add_tiles_bcast_rows, ELWADD);
TTCODEGEN_TILES_BCAST_ROWS(mul_tiles_bcast_rows, ELWMUL);
#undef TTCODEGEN_TILES_BCAST_ROWS

#define TTCODEGEN_BCAST_INIT_SHORT(function, operation, dimension)                                \
    ALWI void function(std::uint32_t, std::uint32_t, std::uint32_t = __builtin_LINE(),            \
                       TTCODEGEN_HERE) {                                                          \
        using namespace ttcodegen::device;                                                        \
        prepare_fpu(fpu_mode(binary_operation<operation>(), BroadcastType::dimension), #function, \
                    here);                                                                        \
    }
TTCODEGEN_BCAST_INIT_SHORT(add_bcast_rows_init_short, ELWADD, ROW);
TTCODEGEN_BCAST_INIT_SHORT(add_bcast_cols_init_short, ELWADD, COL);
TTCODEGEN_BCAST_INIT_SHORT(add_bcast_scalar_init_short, ELWADD, SCALAR);
TTCODEGEN_BCAST_INIT_SHORT(mul_tiles_bcast_scalar_init_short, ELWMUL, SCALAR);
TTCODEGEN_BCAST_INIT_SHORT(mul_bcast_cols_init_short, ELWMUL, COL);
TTCODEGEN_BCAST_INIT_SHORT(mul_bcast_rows_init_short, ELWMUL, ROW);
TTCODEGEN_BCAST_INIT_SHORT(sub_bcast_cols_init_short, ELWSUB, COL);
TTCODEGEN_BCAST_INIT_SHORT(sub_tiles_bcast_scalar_init_short, ELWSUB, SCALAR);
TTCODEGEN_BCAST_INIT_SHORT(add_bcast_rows_init, ELWADD, ROW);
TTCODEGEN_BCAST_INIT_SHORT(add_bcast_cols_init, ELWADD, COL);
TTCODEGEN_BCAST_INIT_SHORT(add_bcast_scalar_init, ELWADD, SCALAR);
TTCODEGEN_BCAST_INIT_SHORT(mul_bcast_scalar_init, ELWMUL, SCALAR);
TTCODEGEN_BCAST_INIT_SHORT(mul_bcast_cols_init, ELWMUL, COL);
TTCODEGEN_BCAST_INIT_SHORT(mul_bcast_rows_init, ELWMUL, ROW);
TTCODEGEN_BCAST_INIT_SHORT(sub_bcast_cols_init, ELWSUB, COL);
TTCODEGEN_BCAST_INIT_SHORT(sub_bcast_rows_init, ELWSUB, ROW);
TTCODEGEN_BCAST_INIT_SHORT(sub_bcast_scalar_init, ELWSUB, SCALAR);
#undef TTCODEGEN_BCAST_INIT_SHORT

}  // namespace ckernel
