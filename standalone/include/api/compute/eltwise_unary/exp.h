#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

enum class InputClamping : std::uint8_t { ClampToNegative = 1, None = 0 };

/// `scale` is the bits of a float that the approximation multiplies its argument by.
template <bool approx = false, std::uint32_t scale = 0x3F800000,
          InputClamping input_clamping = InputClamping::ClampToNegative>
ALWI void exp_tile_init(TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    init_sfpu_operation(SfpuOperation::exp, "exp_tile_init", here, {approx ? scale : 0x3F800000});
}

/// `scale` is the bits of a bfloat16 factor of the argument, where `scale_en` and not `approx`: the
/// approximation has the factor of its initialisation.
template <bool approx = false, bool scale_en = false,
          InputClamping input_clamping = InputClamping::ClampToNegative, int iterations = 8>
ALWI void exp_tile(std::uint32_t idst, int vector_mode = static_cast<int>(VectorMode::RC),
                   std::uint16_t scale = p_sfpu::kCONST_1_FP16B, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    const std::uint32_t factor =
        scale_en && !approx ? static_cast<std::uint32_t>(scale) << 16 : std::uint32_t{0x3F800000};
    SfpuCall call = sfpu_call({idst}, {factor}, vector_mode);
    call.iterations = iterations;
    run_sfpu(SfpuOperation::exp, call, here);
}

template <bool approx = false, std::uint32_t scale = 0x3F800000,
          InputClamping input_clamping = InputClamping::ClampToNegative>
ALWI void exp_packthread_tile_init(TTCODEGEN_HERE) {
    exp_tile_init<approx, scale, input_clamping>(here);
}

template <bool approx = false, bool scale_en = false,
          InputClamping input_clamping = InputClamping::ClampToNegative, int iterations = 8>
ALWI void exp_packthread_tile(std::uint32_t idst,
                              int vector_mode = static_cast<int>(VectorMode::RC),
                              std::uint16_t scale = p_sfpu::kCONST_1_FP16B, TTCODEGEN_HERE) {
    exp_tile<approx, scale_en, input_clamping, iterations>(idst, vector_mode, scale, here);
}

}  // namespace ckernel
