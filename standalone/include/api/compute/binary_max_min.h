#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_BINARY_PAIR(binary_max_int32);
TTCODEGEN_SFPU_BINARY_PAIR(binary_max_uint32);
TTCODEGEN_SFPU_INIT(binary_max_tile_init, binary_max);

ALWI void binary_max_tile(std::uint32_t idst0, std::uint32_t idst1, std::uint32_t odst,
                          int vector_mode = static_cast<int>(VectorMode::RC), TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(binary_max, {idst0, idst1, odst}, {}, vector_mode);
}

TTCODEGEN_SFPU_BINARY_PAIR(binary_min_int32);
TTCODEGEN_SFPU_BINARY_PAIR(binary_min_uint32);
TTCODEGEN_SFPU_INIT(binary_min_tile_init, binary_min);

ALWI void binary_min_tile(std::uint32_t idst0, std::uint32_t idst1, std::uint32_t odst,
                          int vector_mode = static_cast<int>(VectorMode::RC), TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(binary_min, {idst0, idst1, odst}, {}, vector_mode);
}

}  // namespace ckernel
