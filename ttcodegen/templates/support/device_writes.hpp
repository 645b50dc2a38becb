#pragma once

#include "support/tensors.hpp"

namespace support {

/// Converts the elements of an array to the tensor's data type and writes them to its memory, in
/// place.
/// @throws std::runtime_error if shape or elements do not fit the description.
void write(const ArrayView& array, const TensorDescription& description, Tensor& tensor);

}  // namespace support
