#pragma once

namespace tt {

/// The architecture of a device.
enum class ARCH { WORMHOLE_B0 = 2, BLACKHOLE = 3, QUASAR = 4, Invalid = 0xFF };

}  // namespace tt
