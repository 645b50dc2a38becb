#pragma once

#include <string>

#include "support/array.hpp"

namespace support {

/// Reads a .npy file (versions 1 to 3) of booleans, integers or floats of any byte order.
///
/// bfloat16 arrays of ml_dtypes, which numpy stores as two-byte records, are read as such.
/// @throws std::runtime_error, with the path, if the file cannot be read or is not such a file.
Array read_npy(const std::string& path);

/// Writes a .npy file of version 1; bfloat16 is stored as float32, which loses nothing.
/// @throws std::runtime_error, with the path, if the file cannot be written.
void write_npy(const std::string& path, const ArrayView& array);

bool file_exists(const std::string& path);

}  // namespace support
