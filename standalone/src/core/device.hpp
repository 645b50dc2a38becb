#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/trace.hpp"
#include "ttnn/distributed/types.hpp"

namespace ttcodegen::cpu {
class Fabric;
class L1Banks;
class MemoryUse;
}  // namespace ttcodegen::cpu

namespace ttcodegen::device {
struct Architecture;
class EmulatedDevice;
}  // namespace ttcodegen::device

namespace tt::tt_metal::distributed {

class MeshCommandQueue;

/// The state of a device, or of a mesh of several.
class MeshDeviceImpl {
  public:
    /// @param worker_l1_size Bytes of each L1 for tensors, circular buffers and L1_SMALL; 0 for
    /// all.
    /// @param trace_region_size Bytes of DRAM that are set aside for traces.
    MeshDeviceImpl(MeshShape shape_, std::size_t l1_small_size_, std::size_t trace_region_size,
                   std::size_t num_command_queues, std::size_t worker_l1_size);
    ~MeshDeviceImpl();

    /// As many devices as the largest mesh of one machine has: a Galaxy.
    static constexpr std::size_t kMostChips = 32;
    /// A mesh of several devices.
    static std::shared_ptr<MeshDevice> create_mesh(const MeshShape& shape,
                                                   std::size_t l1_small_size,
                                                   std::size_t trace_region_size,
                                                   std::size_t num_command_queues,
                                                   std::size_t worker_l1_size);

    MeshShape shape;
    /// Bytes a core sets aside for L1_SMALL buffers, which windowed operations need.
    std::size_t l1_small_size;
    std::size_t num_command_queues;
    bool open = true;
    const ttcodegen::device::Architecture& architecture;

    /// What tensors take of the L1 of the cores; they may outlive the device.
    std::shared_ptr<ttcodegen::cpu::L1Banks> l1;
    /// What tensors take of DRAM and L1 in all; they may outlive the device.
    std::shared_ptr<ttcodegen::cpu::MemoryUse> memory_use;

    /// The devices of a mesh of several, row by row; empty for a single one.
    std::vector<std::shared_ptr<MeshDevice>> chips;
    /// The links between the devices of a mesh; null for a single one.
    std::unique_ptr<ttcodegen::cpu::Fabric> fabric;

    /// Memories and registers, of all devices of a mesh, which programs of the ttnn library never
    /// need.
    ttcodegen::device::EmulatedDevice& emulated();
    bool has_emulated() const { return emulated_ != nullptr; }
    /// Gives up the memories: buffers of the device are void from then on.
    bool close();
    std::vector<std::unique_ptr<MeshCommandQueue>> command_queues;
    ttcodegen::cpu::Traces traces;

  private:
    std::shared_ptr<ttcodegen::device::EmulatedDevice> emulated_;
};

}  // namespace tt::tt_metal::distributed
