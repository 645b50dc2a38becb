#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device/architecture.hpp"
#include "device/compute/hooks.hpp"
#include "device/memory.hpp"

namespace ttcodegen::device {

struct ComputeStateDeleter {
    void operator()(ComputeState* state) const { destroy_compute_state(state); }
};

/// What a mesh device has once a program or a buffer needs it: memories and registers.
class EmulatedDevice : public std::enable_shared_from_this<EmulatedDevice> {
  public:
    EmulatedDevice(const Architecture& architecture, std::size_t l1_small_size);

    const Architecture& architecture() const { return architecture_; }
    Memory& memory() { return memory_; }
    Allocator& dram() { return dram_; }
    Allocator& l1() { return l1_; }
    Allocator& l1_small() { return l1_small_; }

    std::uint32_t worker_index(CoreCoord logical) const {
        return static_cast<std::uint32_t>(logical.y * architecture_.worker_grid.x + logical.x);
    }
    /// The registers of a worker's compute processor; made when they are first used.
    ComputeState* compute_state(std::uint32_t worker);

  private:
    const Architecture& architecture_;
    Memory memory_;
    Allocator dram_;
    Allocator l1_;
    Allocator l1_small_;
    std::vector<std::unique_ptr<ComputeState, ComputeStateDeleter>> compute_states_;
};

}  // namespace ttcodegen::device
