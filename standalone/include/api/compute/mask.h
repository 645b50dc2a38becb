#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(mask_tile_init, mask);

/// Zeroes the elements whose mask is 0. The mask is the tile after the data.
ALWI void mask_tile(std::uint32_t idst_data, std::uint32_t idst2_mask,
                    DataFormat data_format = DataFormat::Float16_b, TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(mask, {idst_data, idst2_mask, idst_data},
                       {static_cast<std::uint32_t>(data_format)});
}

/// Sets the elements whose mask is 0 to infinity. The mask is the tile after the data.
ALWI void mask_posinf_tile(std::uint32_t idst_data, std::uint32_t idst2_mask, TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(mask_posinf, {idst_data, idst2_mask, idst_data});
}

}  // namespace ckernel
