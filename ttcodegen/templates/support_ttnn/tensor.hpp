#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <ttnn/tensor/tensor.hpp>
#include <ttnn/tensor/types.hpp>

namespace support {

/// The tensor type of the modules' functions.
using Tensor = tt::tt_metal::Tensor;

/// A host tensor, row-major (tiled for block floats), with the elements of `name`.npy in the data
/// folder.
/// @throws std::runtime_error if the file cannot be read, or holds another shape, or elements that
/// do not fit.
ttnn::Tensor load_tensor(const std::string& name, const ttnn::Shape& shape,
                         tt::tt_metal::DataType data_type);

/// Reads the first element of a tensor of 32-bit integers. Waits for the device.
/// @throws std::runtime_error if it is negative or of another type.
std::uint32_t read_index(const ttnn::Tensor& tensor);

/// Reads a tensor of one element: true unless it is zero. Waits for the device.
bool read_flag(const ttnn::Tensor& tensor);

/// L1_SMALL of each core: convolutions and pools keep their halo tables there.
constexpr std::size_t l1_small_bytes = 32 * 1024;

}  // namespace support
