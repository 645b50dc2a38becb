#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

template <DataFormat data_format>
TTCODEGEN_SFPU_INIT(lt_int_tile_init, lt_int);
TTCODEGEN_SFPU_BINARY_FORMAT(lt_int_tile, lt_int);
template <DataFormat data_format>
TTCODEGEN_SFPU_INIT(gt_int_tile_init, gt_int);
TTCODEGEN_SFPU_BINARY_FORMAT(gt_int_tile, gt_int);
template <DataFormat data_format>
TTCODEGEN_SFPU_INIT(le_int_tile_init, le_int);
TTCODEGEN_SFPU_BINARY_FORMAT(le_int_tile, le_int);
template <DataFormat data_format>
TTCODEGEN_SFPU_INIT(ge_int_tile_init, ge_int);
TTCODEGEN_SFPU_BINARY_FORMAT(ge_int_tile, ge_int);

}  // namespace ckernel
