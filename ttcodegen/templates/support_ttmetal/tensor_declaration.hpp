#pragma once

namespace support {

struct DeviceTensor;

/// What functions of modules take and give.
using Tensor = DeviceTensor;

}  // namespace support
