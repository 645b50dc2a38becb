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
    /// @param trace_region_size Bytes of DRAM that are reserved for traces.
    MeshDeviceImpl(MeshShape shape_, std::size_t l1_small_size_, std::size_t trace_region_size,
                   std::size_t num_command_queues, std::size_t worker_l1_size);
    ~MeshDeviceImpl();

    /// The number of devices of the largest mesh of tt-metal's descriptors: four Galaxies.
    static constexpr std::size_t kMostChips = 128;
    /// A mesh of several devices.
    static std::shared_ptr<MeshDevice> create_mesh(const MeshShape& shape,
                                                   std::size_t l1_small_size,
                                                   std::size_t trace_region_size,
                                                   std::size_t num_command_queues,
                                                   std::size_t worker_l1_size);

    MeshShape shape;
    /// L1_SMALL of each core in bytes, which sliding window operations need.
    std::size_t l1_small_size;
    std::size_t num_command_queues;
    bool open = true;
    const ttcodegen::device::Architecture& architecture;

    /// L1 allocations of tensors, which may outlive the device.
    std::shared_ptr<ttcodegen::cpu::L1Banks> l1;
    /// Total DRAM and L1 use of tensors, which may outlive the device.
    std::shared_ptr<ttcodegen::cpu::MemoryUse> memory_use;

    /// The devices of a mesh of several, in row-major order; empty for a single one.
    std::vector<std::shared_ptr<MeshDevice>> chips;
    /// The links between the devices of a mesh; null for a single one.
    std::unique_ptr<ttcodegen::cpu::Fabric> fabric;

    /// Memories and registers of all devices of a mesh, which programs with ttnn calls only never
    /// need.
    ttcodegen::device::EmulatedDevice& emulated();
    bool has_emulated() const { return emulated_ != nullptr; }
    /// Frees the memories: buffers of the device are invalid from then on.
    bool close();
    std::vector<std::unique_ptr<MeshCommandQueue>> command_queues;
    ttcodegen::cpu::Traces traces;

  private:
    std::shared_ptr<ttcodegen::device::EmulatedDevice> emulated_;
};

}  // namespace tt::tt_metal::distributed
