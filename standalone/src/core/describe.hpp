#pragma once

#include <optional>
#include <string>

#include "tt_stl/assert.hpp"
#include "ttnn/types.hpp"

namespace tt::tt_metal {

// Texts of messages; found by argument-dependent lookup from TT_FATAL and TT_THROW.
std::string describe(DataType dtype);
std::string describe(Layout layout);
std::string describe(StorageType storage);
std::string describe(BufferType buffer_type);
std::string describe(TensorMemoryLayout memory_layout);
std::string describe(const Shape& shape);
std::string describe(const MemoryConfig& memory_config);

}  // namespace tt::tt_metal
