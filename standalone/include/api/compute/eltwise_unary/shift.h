#pragma once

#include "api/compute/eltwise_unary/left_shift.h"
#include "api/compute/eltwise_unary/right_shift.h"

// The form of later releases.
namespace ckernel {

template <DataFormat data_format>
TTCODEGEN_SFPU_UNARY_1(left_shift_tile, left_shift);
template <DataFormat data_format>
TTCODEGEN_SFPU_UNARY_1(right_shift_tile, right_shift);

}  // namespace ckernel
