#pragma once

#include "support/device_tensor.hpp"

namespace support {

/// What functions of modules take and give.
using Tensor = DeviceTensor;

}  // namespace support
