#pragma once

#include "support/device_tensor.hpp"

namespace support {

/// The tensor type of the modules' functions.
using Tensor = DeviceTensor;

}  // namespace support
