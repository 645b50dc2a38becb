#pragma once

#include <cstddef>

#include "ttnn/distributed/types.hpp"

namespace tt::tt_metal::distributed {

/// The state of the CPU backend's one device, a Wormhole B0 with 8x8 worker cores.
class MeshDeviceImpl {
  public:
    MeshDeviceImpl(MeshShape shape_, std::size_t l1_small_size_)
        : shape(std::move(shape_)), l1_small_size(l1_small_size_) {}

    MeshShape shape;
    /// Bytes a core sets aside for L1_SMALL buffers, which windowed operations need.
    std::size_t l1_small_size;
    bool open = true;
};

}  // namespace tt::tt_metal::distributed
