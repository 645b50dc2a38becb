#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

ALWI void quant_tile_init(const std::uint32_t zero_point, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    init_sfpu_operation(SfpuOperation::quant, "quant_tile_init", here, {zero_point});
}
TTCODEGEN_SFPU_BINARY(quant_tile, quant);

ALWI void requant_tile_init(const std::uint32_t zero_point, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    init_sfpu_operation(SfpuOperation::requant, "requant_tile_init", here, {zero_point});
}
TTCODEGEN_SFPU_BINARY(requant_tile, requant);

ALWI void dequant_tile_init(const std::uint32_t zero_point, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    init_sfpu_operation(SfpuOperation::dequant, "dequant_tile_init", here, {zero_point});
}
TTCODEGEN_SFPU_BINARY(dequant_tile, dequant);

}  // namespace ckernel
