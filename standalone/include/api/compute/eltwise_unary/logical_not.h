#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(logical_not_tile_init, logical_not);

template <DataFormat DATA_FORMAT>
ALWI void logical_not_tile(std::uint32_t idst, TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(logical_not, {idst}, {static_cast<std::uint32_t>(DATA_FORMAT)});
}

}  // namespace ckernel
