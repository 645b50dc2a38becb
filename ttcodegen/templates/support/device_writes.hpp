#pragma once

#include "support/tensors.hpp"

namespace support {

/// Writes the elements of an array, converted to the tensor's data type, to the memory that the
/// tensor has.
/// @throws std::runtime_error if shape or elements do not fit the description.
void write(const ArrayView& array, const TensorDescription& description, Tensor& tensor);

}  // namespace support
