#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(copy_dest_values_init, copy_dest_values);

template <DataFormat DATA_FORMAT>
ALWI void copy_dest_values(std::uint32_t idst_in, std::uint32_t idst_out, TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(copy_dest_values, {idst_in, idst_out},
                       {static_cast<std::uint32_t>(DATA_FORMAT)});
}

[[deprecated("Use copy_dest_values<DataFormat> instead")]]
ALWI void copy_dest_values(std::uint32_t idst_in, std::uint32_t idst_out, TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(copy_dest_values, {idst_in, idst_out});
}

}  // namespace ckernel
