#pragma once

#include <cstdint>

namespace tt::tt_metal {

/// The number of passes of the multiplier in a matrix engine operation.
enum class MathFidelity : std::uint8_t {
    LoFi = 0,
    HiFi2 = 2,
    HiFi3 = 3,
    HiFi4 = 4,
    Invalid = 0xff,
};

enum class UnpackToDestMode : std::uint8_t { UnpackToDestFp32, Default };

}  // namespace tt::tt_metal
