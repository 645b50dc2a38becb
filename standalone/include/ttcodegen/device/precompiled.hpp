/// The first line of each kernel: standard headers, which take most of the time of parsing and
/// are compiled once for all kernels.
///
/// A kernel sees no more of the standard library than it does without this header: the prologue
/// includes the same, and `<algorithm>` is there only for kernels that include it themselves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <source_location>
