#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(fill_tile_init, fill);

ALWI void fill_tile(std::uint32_t idst, float param0, TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(fill, {idst}, {__builtin_bit_cast(std::uint32_t, param0)});
}

template <DataFormat DATA_FORMAT>
ALWI void fill_tile_int(std::uint32_t idst, std::uint32_t param0, TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(fill_int, {idst}, {param0});
}

/// The parameter is the bits of a float.
ALWI void fill_tile_bitcast(std::uint32_t idst, std::uint32_t param0, TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(fill, {idst}, {param0});
}

}  // namespace ckernel
