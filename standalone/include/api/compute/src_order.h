#pragma once

#include <cstdint>

namespace ckernel {

/// Source registers of two operands: the second operand of a matmul is in source A.
enum class SrcOrder : std::uint8_t { Regular = 0, Reverse = 1 };

}  // namespace ckernel
