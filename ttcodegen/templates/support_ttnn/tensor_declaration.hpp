#pragma once

// Declared, not included: who only describes or runs a module does not need the library's headers.
namespace tt::tt_metal {

class Tensor;

}  // namespace tt::tt_metal

namespace support {

/// What functions of modules take and give.
using Tensor = tt::tt_metal::Tensor;

}  // namespace support
