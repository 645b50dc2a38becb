#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

TTCODEGEN_SFPU_BINARY_PAIR(fmod_int32);
TTCODEGEN_SFPU_BINARY_PAIR(fmod_binary);

}  // namespace ckernel
