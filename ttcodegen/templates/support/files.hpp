#pragma once

#include <string>

#include "support/array.hpp"

namespace support {

/// Reads a .npy file (versions 1 to 3) of booleans, integers or floats of any byte order.
///
/// bfloat16 arrays of ml_dtypes, which numpy stores as two-byte records, are read as such. Elements
/// that need no conversion are mapped: the file must not shrink while the array is in use.
/// @throws std::runtime_error, with the path, if the file cannot be read or is no valid .npy file.
Array read_npy(const std::string& path);

/// Writes a .npy file of version 1; bfloat16 is stored as float32, which loses nothing.
/// @throws std::runtime_error, with the path, if the file cannot be written.
void write_npy(const std::string& path, const ArrayView& array);

/// @throws std::runtime_error, with the path, if it exists but is not a regular file: a folder, a
/// pipe or a dangling link.
bool file_exists(const std::string& path);

/// The folder with the files of weights and constants.
///
/// It is the folder of `DataDirectory`; else the environment variable TTCODEGEN_DATA; else `data`
/// next to the executable or shared object that contains this function, or in the folder above it.
/// Empty if there is none.
std::string data_directory();

/// The folder that the environment variable names; else `name` next to the executable or shared
/// object that contains this function, or in the folder above it. Empty if there is none.
std::string installed_directory(const char* variable, const std::string& name);

/// Overrides `data_directory` for the calling thread while the object lives.
class DataDirectory {
  public:
    explicit DataDirectory(std::string path);
    DataDirectory(const DataDirectory&) = delete;
    DataDirectory& operator=(const DataDirectory&) = delete;
    ~DataDirectory();

  private:
    std::string previous_;
};

}  // namespace support
