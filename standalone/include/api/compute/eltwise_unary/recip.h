#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

template <bool legacy_compat = true>
TTCODEGEN_SFPU_INIT(recip_tile_init, recip);

template <bool legacy_compat = true>
ALWI void recip_tile(std::uint32_t idst, int vector_mode = static_cast<int>(VectorMode::RC),
                     TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(recip, {idst}, {}, vector_mode);
}

}  // namespace ckernel
