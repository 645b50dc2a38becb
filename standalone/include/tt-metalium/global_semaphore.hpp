#pragma once

#include <cstdint>
#include <memory>

#include "tt-metalium/buffer_types.hpp"
#include "tt-metalium/core_coord.hpp"
#include "tt-metalium/mesh_buffer.hpp"

namespace tt::tt_metal {

class IDevice;

/// A semaphore on all devices of a mesh, owned by the host object; kernels of other devices can
/// increment it.
class GlobalSemaphore {
  public:
    GlobalSemaphore(IDevice* device, const CoreRangeSet& cores, std::uint32_t initial_value,
                    BufferType buffer_type = BufferType::L1);

    IDevice* device() const;
    DeviceAddr address() const;
    void reset_semaphore_value(std::uint32_t reset_value) const;

  private:
    std::shared_ptr<distributed::MeshBuffer> buffer_;
    IDevice* device_;
    CoreRangeSet cores_;
};

}  // namespace tt::tt_metal
