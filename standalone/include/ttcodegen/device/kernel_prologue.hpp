/// The prologue of each kernel's source: definitions of the release's build for the
/// processor.
#pragma once

#include "ttcodegen/device/processor.hpp"

#define FORCE_INLINE inline __attribute__((always_inline))
// Address spaces of pointers are irrelevant here: L1 is memory of the process.
#define tt_l1_ptr
#define tt_reg_ptr

#include "api/compile_time_args.h"

using uint = unsigned int;
