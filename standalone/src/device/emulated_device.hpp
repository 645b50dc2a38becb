#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "device/architecture.hpp"
#include "device/compute/hooks.hpp"
#include "device/memory.hpp"
#include "mesh/fabric.hpp"

namespace ttcodegen::device {

struct ComputeStateDeleter {
    void operator()(ComputeState* state) const { destroy_compute_state(state); }
};

/// The maximum payload of a packet between chips: the largest tile that packets support.
inline constexpr std::uint32_t kFabricPayloadBytes = 4352;
/// The size of its header.
inline constexpr std::uint32_t kFabricHeaderBytes = 64;

/// Data that arrived over a link for the L1 of a chip.
struct Arrival {
    std::byte* memory;     ///< Where L1 is once it is the chip's turn.
    std::uint32_t worker;  ///< Whose it is.
    std::vector<std::byte> data;
    std::uint32_t increment;  ///< Of the word there, if there is no data.
};

/// The memories and registers of a mesh device, created when a program or a buffer needs them.
/// Chips of a mesh have separate memories, with buffers at the same addresses. Programs run on one
/// chip after the other, so that all of them share one set of registers.
class EmulatedDevice : public std::enable_shared_from_this<EmulatedDevice> {
  public:
    EmulatedDevice(const Architecture& architecture, std::size_t l1_small_size, std::size_t chips);

    const Architecture& architecture() const { return architecture_; }
    std::size_t chips() const { return memories_.size(); }
    /// Reserves the addresses of L1 while the returned object lives.
    L1Addresses::Turn turn() { return L1Addresses::Turn(memories_.front()->addresses()); }
    /// The memory of a chip of the mesh, by row-major index. The L1 of other chips is unmapped
    /// until their memory is requested. The caller must hold a turn.
    Memory& memory(std::size_t chip) {
        memories_[chip]->map_l1();
        return *memories_[chip];
    }
    /// The DRAM of a chip, which is always mapped.
    std::byte* dram_of(std::size_t chip) { return memories_[chip]->dram(0); }

    /// The links between the chips.
    void set_fabric(cpu::Fabric* fabric) { fabric_ = fabric; }
    /// Sends a packet over `hops` links, the first to the chip `next`.
    /// @return The destination; nothing if the line is shorter, or there is no link.
    std::optional<std::size_t> send(std::size_t chip, std::size_t next, std::size_t hops,
                                    std::uint64_t bytes);
    /// Stores data for the L1 of a chip until its turn.
    void deliver(std::size_t chip, Arrival arrival) {
        arrived_[chip].push_back(std::move(arrival));
    }
    std::vector<Arrival> take_arrived(std::size_t chip) {
        return std::exchange(arrived_[chip], {});
    }
    /// The number of packets so far.
    std::uint64_t packets() const { return packets_; }

    Allocator& dram() { return dram_; }
    Allocator& l1() { return l1_; }
    Allocator& l1_small() { return l1_small_; }

    std::uint32_t worker_index(CoreCoord logical) const {
        return static_cast<std::uint32_t>(logical.y * architecture_.worker_grid.x + logical.x);
    }
    /// The registers of a worker's compute processor; created on first use.
    ComputeState* compute_state(std::uint32_t worker);

  private:
    const Architecture& architecture_;
    std::vector<std::unique_ptr<Memory>> memories_;
    Allocator dram_;
    Allocator l1_;
    Allocator l1_small_;
    cpu::Fabric* fabric_ = nullptr;
    std::vector<std::vector<Arrival>> arrived_;  ///< By chip.
    std::uint64_t packets_ = 0;
    std::vector<std::unique_ptr<ComputeState, ComputeStateDeleter>> compute_states_;
};

}  // namespace ttcodegen::device
