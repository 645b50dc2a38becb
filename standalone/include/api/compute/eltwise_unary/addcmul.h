#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(addcmul_tile_init, addcmul);

/// odst = idst0 + value * idst1 * idst2; `value` is the bits of a float, or an integer.
template <DataFormat data_format>
ALWI void addcmul_tile(std::uint32_t idst0, std::uint32_t idst1, std::uint32_t idst2,
                       std::uint32_t odst, std::uint32_t value, TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(addcmul, {idst0, idst1, idst2, odst},
                       {static_cast<std::uint32_t>(data_format), value});
}

}  // namespace ckernel
