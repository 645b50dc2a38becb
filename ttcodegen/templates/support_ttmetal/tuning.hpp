#pragma once

#include <cstdint>

namespace support {

/// `dividend / divisor`, rounded up.
constexpr std::uint32_t ceil_quotient(std::uint32_t dividend, std::uint32_t divisor) {
    return (dividend + divisor - 1) / divisor;
}

}  // namespace support
