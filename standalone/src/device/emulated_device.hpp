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

/// What a mesh device has once a program or a buffer needs it: memories and registers. Chips of a
/// mesh have memories of their own, with buffers at the same addresses. Programs run on one chip
/// after the other, so that all of them use one set of registers.
class EmulatedDevice : public std::enable_shared_from_this<EmulatedDevice> {
  public:
    EmulatedDevice(const Architecture& architecture, std::size_t l1_small_size, std::size_t chips);

    const Architecture& architecture() const { return architecture_; }
    std::size_t chips() const { return memories_.size(); }
    /// That of a chip of the mesh, counted row by row. The L1 of others is out of reach until their
    /// memory is asked for.
    Memory& memory(std::size_t chip) {
        if (chip != mapped_) {
            memories_[chip]->map_l1();
            mapped_ = chip;
        }
        return *memories_[chip];
    }
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
    std::vector<std::unique_ptr<Memory>> memories_;
    std::size_t mapped_ = 0;  ///< The chip whose L1 is at its place.
    Allocator dram_;
    Allocator l1_;
    Allocator l1_small_;
    std::vector<std::unique_ptr<ComputeState, ComputeStateDeleter>> compute_states_;
};

}  // namespace ttcodegen::device
