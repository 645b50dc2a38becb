#pragma once

#include "api/compute/common.h"
#include "api/compute/sentinel/compute_kernel_sentinel.h"

namespace ckernel {

ALWI void binary_op_init_common(std::uint32_t icb0, std::uint32_t icb1, std::uint32_t ocb,
                                std::uint32_t = __builtin_LINE(), TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    configure_formats(icb0, icb1, ocb, "binary_op_init_common", here);
    // Math is set up by the initialisation of the operation itself.
    prepare_fpu(fpu_mode(FpuOperation::Add), "binary_op_init_common", here, {},
                {.unpack = true, .math = false});
}

template <bool full_init, EltwiseBinaryType eltwise_binary_type>
ALWI void binary_tiles_init(std::uint32_t, std::uint32_t, bool acc_to_dest = false,
                            std::uint32_t = __builtin_LINE(), TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    FpuParameters parameters;
    parameters.accumulate = acc_to_dest;
    prepare_fpu(fpu_mode(binary_operation<eltwise_binary_type>()), "binary_tiles_init", here,
                parameters, {.unpack = full_init, .math = true});
}

ALWI void mul_tiles_init(std::uint32_t icb0, std::uint32_t icb1,
                         std::uint32_t call_line = __builtin_LINE(), TTCODEGEN_HERE) {
    binary_tiles_init<true, ELWMUL>(icb0, icb1, true, call_line, here);
}

ALWI void mul_tiles_init(std::uint32_t icb0, std::uint32_t icb1, std::uint32_t acc_to_dest,
                         std::uint32_t call_line = __builtin_LINE(), TTCODEGEN_HERE) {
    binary_tiles_init<true, ELWMUL>(icb0, icb1, acc_to_dest != 0, call_line, here);
}

#define TTCODEGEN_BINARY_INIT(function, operation, accumulates)                                \
    ALWI void function(std::uint32_t icb0, std::uint32_t icb1, bool acc_to_dest = accumulates, \
                       std::uint32_t call_line = __builtin_LINE(), TTCODEGEN_HERE) {           \
        binary_tiles_init<true, operation>(icb0, icb1, acc_to_dest, call_line, here);          \
    }
TTCODEGEN_BINARY_INIT(add_tiles_init, ELWADD, false);
TTCODEGEN_BINARY_INIT(sub_tiles_init, ELWSUB, false);
TTCODEGEN_BINARY_INIT(add_init, ELWADD, false);
TTCODEGEN_BINARY_INIT(sub_init, ELWSUB, false);
TTCODEGEN_BINARY_INIT(mul_init, ELWMUL, true);
#undef TTCODEGEN_BINARY_INIT

/// Accumulates the product in the tile of DST.
ALWI void mul_tiles(std::uint32_t icb0, std::uint32_t icb1, std::uint32_t itile0,
                    std::uint32_t itile1, std::uint32_t idst, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    Processor& processor = current();
    compute_of(processor).binary(processor, fpu_mode(FpuOperation::Multiply), icb0, icb1, itile0,
                                 itile1, idst, 0, here);
}

ALWI void add_tiles(std::uint32_t icb0, std::uint32_t icb1, std::uint32_t itile0,
                    std::uint32_t itile1, std::uint32_t idst, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    Processor& processor = current();
    compute_of(processor).binary(processor, fpu_mode(FpuOperation::Add), icb0, icb1, itile0, itile1,
                                 idst, 0, here);
}

ALWI void sub_tiles(std::uint32_t icb0, std::uint32_t icb1, std::uint32_t itile0,
                    std::uint32_t itile1, std::uint32_t idst, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    Processor& processor = current();
    compute_of(processor).binary(processor, fpu_mode(FpuOperation::Subtract), icb0, icb1, itile0,
                                 itile1, idst, 0, here);
}

template <EltwiseBinaryType eltwise_binary_type = ELWADD,
          EltwiseBinaryReuseDestType binary_reuse_dest = EltwiseBinaryReuseDestType::NONE>
ALWI void binary_dest_reuse_tiles_init(std::uint32_t, std::uint32_t = __builtin_LINE(),
                                       TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    prepare_fpu(fpu_mode(binary_operation<eltwise_binary_type>(), NONE, binary_reuse_dest),
                "binary_dest_reuse_tiles_init", here);
}

template <EltwiseBinaryType eltwise_binary_type = ELWADD,
          EltwiseBinaryReuseDestType binary_reuse_dest = EltwiseBinaryReuseDestType::NONE>
ALWI void binary_dest_reuse_tiles(std::uint32_t in_cb_id, std::uint32_t in_tile_index,
                                  std::uint32_t dst_tile_index, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    Processor& processor = current();
    compute_of(processor).binary_reuse(
        processor, fpu_mode(binary_operation<eltwise_binary_type>(), NONE, binary_reuse_dest),
        in_cb_id, in_tile_index, dst_tile_index, here);
}

#define TTCODEGEN_REUSE(name, operation)                                                           \
    template <EltwiseBinaryReuseDestType reuse_dest>                                               \
    ALWI void name##_reuse_dest_init(std::uint32_t icb,                                            \
                                     std::uint32_t call_line = __builtin_LINE(), TTCODEGEN_HERE) { \
        static_assert(reuse_dest != EltwiseBinaryReuseDestType::NONE);                             \
        binary_dest_reuse_tiles_init<operation, reuse_dest>(icb, call_line, here);                 \
    }                                                                                              \
    template <EltwiseBinaryReuseDestType reuse_dest>                                               \
    ALWI void name##_reuse_dest_tiles(std::uint32_t in_cb_id, std::uint32_t in_tile_index,         \
                                      std::uint32_t dst_tile_index, TTCODEGEN_HERE) {              \
        static_assert(reuse_dest != EltwiseBinaryReuseDestType::NONE);                             \
        binary_dest_reuse_tiles<operation, reuse_dest>(in_cb_id, in_tile_index, dst_tile_index,    \
                                                       here);                                      \
    }
TTCODEGEN_REUSE(add, ELWADD)
TTCODEGEN_REUSE(sub, ELWSUB)
TTCODEGEN_REUSE(mul, ELWMUL)
#undef TTCODEGEN_REUSE

}  // namespace ckernel
