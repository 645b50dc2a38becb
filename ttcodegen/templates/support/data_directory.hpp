#pragma once

#include <string>

namespace support {

/// The folder with the files of weights and constants.
///
/// That is what `DataDirectory` says; else the environment variable TTCODEGEN_DATA; else `data`
/// next to the executable or shared object that this function is part of, or in the folder above
/// it. Empty if there is none.
std::string data_directory();

/// The folder that the environment variable names; else `name` next to the executable or shared
/// object that this function is part of, or in the folder above it. Empty if there is none.
std::string installed_directory(const char* variable, const std::string& name);

/// Makes `data_directory` name another folder for the calling thread, for as long as it lives.
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
