#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_INIT(sfpu_sum_int_init, sum_int_column);
/// Row 0 becomes the sum of the rows.
TTCODEGEN_SFPU_UNARY(sfpu_sum_int_col, sum_int_column);
/// Column 0 becomes the sum of the columns.
TTCODEGEN_SFPU_UNARY(sfpu_sum_int_row, sum_int_row);

}  // namespace ckernel
