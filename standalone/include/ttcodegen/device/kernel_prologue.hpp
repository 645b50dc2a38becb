/// What each kernel sees before its own text: what the release's build puts there for the
/// processor.
#pragma once

#include "ttcodegen/device/processor.hpp"

#define FORCE_INLINE inline __attribute__((always_inline))
// Which memory a pointer leads to is of no interest here: L1 is memory of the process.
#define tt_l1_ptr
#define tt_reg_ptr

#include "api/compile_time_args.h"

using uint = unsigned int;
