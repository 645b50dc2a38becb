#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(addcdiv_tile_init, addcdiv);

/// odst = idst0 + value * idst1 / idst2; `value` is the bits of a float.
template <DataFormat data_format>
ALWI void addcdiv_tile(std::uint32_t idst0, std::uint32_t idst1, std::uint32_t idst2,
                       std::uint32_t odst, std::uint32_t value, TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(addcdiv, {idst0, idst1, idst2, odst}, {value});
}

}  // namespace ckernel
