#pragma once

#include "support/device_tensor.hpp"

namespace support {

/// The tensors that functions of modules take and return.
using Tensor = DeviceTensor;

}  // namespace support
