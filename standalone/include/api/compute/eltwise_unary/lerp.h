#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(lerp_tile_init, lerp);

/// odst = idst0 + idst2 * (idst1 - idst0).
template <DataFormat data_format>
ALWI void lerp_tile(std::uint32_t idst0, std::uint32_t idst1, std::uint32_t idst2,
                    std::uint32_t odst, TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(lerp, {idst0, idst1, idst2, odst});
}

}  // namespace ckernel
