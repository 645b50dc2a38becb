#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(where_tile_init, where);

/// odst = idst0 != 0 ? idst1 : idst2.
template <DataFormat data_format>
ALWI void where_tile(std::uint32_t idst0, std::uint32_t idst1, std::uint32_t idst2,
                     std::uint32_t odst, TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(where, {idst0, idst1, idst2, odst},
                       {static_cast<std::uint32_t>(data_format)});
}

}  // namespace ckernel
