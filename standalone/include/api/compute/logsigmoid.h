#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

/// The second operand is e^-x of the first, which the device computes separately.
TTCODEGEN_SFPU_BINARY_PAIR(logsigmoid);

}  // namespace ckernel
