#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

template <std::uint32_t IN_DTYPE, std::uint32_t OUT_DTYPE>
ALWI void typecast_tile_init(TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    init_sfpu_operation(SfpuOperation::typecast, "typecast_tile_init", here, {IN_DTYPE, OUT_DTYPE});
}

/// Data types are values of DataFormat.
template <std::uint32_t IN_DTYPE, std::uint32_t OUT_DTYPE>
ALWI void typecast_tile(std::uint32_t idst, TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(typecast, {idst}, {IN_DTYPE, OUT_DTYPE});
}

}  // namespace ckernel
