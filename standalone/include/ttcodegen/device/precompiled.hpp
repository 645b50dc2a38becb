/// The first include of each kernel: standard headers, which dominate the time of parsing and are
/// precompiled once for all kernels.
///
/// Kernels get no other names of the standard library than without it: the prologue includes the
/// same headers, and `<algorithm>` is included only for kernels that include it themselves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <source_location>
