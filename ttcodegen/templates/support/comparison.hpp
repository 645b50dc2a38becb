#pragma once

#include "support/array.hpp"

namespace support {

/// How far an array may be from the expected one.
struct Tolerance {
    /// The least Pearson correlation.
    double correlation;
    /// The greatest error, as a part of the range of the expected values.
    double error;
};

struct Comparison {
    /// Pearson correlation of the finite elements; 1 where it says nothing: one element, or all
    /// expected elements equal.
    double correlation = 1;
    double max_error = 0;
    bool passed = false;
};

/// Compares arrays of one shape element by element, in double precision.
///
/// NaNs have to meet NaNs and infinities equal infinities.
/// @throws std::runtime_error if the shapes differ.
Comparison compare(const ArrayView& actual, const ArrayView& expected, const Tolerance& tolerance);

}  // namespace support
