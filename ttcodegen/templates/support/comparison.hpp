#pragma once

#include "support/tensors.hpp"

namespace support {

/// Compares arrays of one shape element by element, in double precision, and prints the result.
///
/// NaNs must match NaNs, and infinities equal infinities.
/// @return whether the difference is within the tolerance.
/// @throws std::runtime_error if the shapes differ.
bool print_comparison(const ArrayView& actual, const ArrayView& expected,
                      const Tolerance& tolerance);

}  // namespace support
