#pragma once

#include "api/compute/transpose_wh.h"

// The names of later releases.
namespace ckernel {

ALWI void transpose_init(std::uint32_t icb, std::uint32_t call_line = __builtin_LINE(),
                         TTCODEGEN_HERE) {
    transpose_wh_init_short(icb, call_line, here);
}

ALWI void transpose_tile(std::uint32_t icb, std::uint32_t itile, std::uint32_t idst,
                         TTCODEGEN_HERE) {
    transpose_wh_tile(icb, itile, idst, here);
}

}  // namespace ckernel
