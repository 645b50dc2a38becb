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

/// The most that a packet between chips carries: the largest tile that packets are made for.
inline constexpr std::uint32_t kFabricPayloadBytes = 4352;
/// What precedes it.
inline constexpr std::uint32_t kFabricHeaderBytes = 64;

/// What came over a link for the L1 of a chip.
struct Arrival {
    std::byte* memory;     ///< Where L1 is once it is the chip's turn.
    std::uint32_t worker;  ///< Whose it is.
    std::vector<std::byte> data;
    std::uint32_t increment;  ///< Of the word there, if there is no data.
};

/// What a mesh device has once a program or a buffer needs it: memories and registers. Chips of a
/// mesh have memories of their own, with buffers at the same addresses. Programs run on one chip
/// after the other, so that all of them use one set of registers.
class EmulatedDevice : public std::enable_shared_from_this<EmulatedDevice> {
  public:
    EmulatedDevice(const Architecture& architecture, std::size_t l1_small_size, std::size_t chips);

    const Architecture& architecture() const { return architecture_; }
    std::size_t chips() const { return memories_.size(); }
    /// Holds the addresses of L1 for as long as what it gives lives.
    L1Addresses::Turn turn() { return L1Addresses::Turn(memories_.front()->addresses()); }
    /// That of a chip of the mesh, counted row by row. The L1 of others is out of reach until their
    /// memory is requested. The caller has a turn.
    Memory& memory(std::size_t chip) {
        memories_[chip]->map_l1();
        return *memories_[chip];
    }
    /// The DRAM of a chip, which is always within reach.
    std::byte* dram_of(std::size_t chip) { return memories_[chip]->dram(0); }

    /// The links between the chips.
    void set_fabric(cpu::Fabric* fabric) { fabric_ = fabric; }
    /// Lets a packet go over `hops` links, the first to the chip `next`.
    /// @return Where it arrives; nothing if the line is shorter, or there is no link.
    std::optional<std::size_t> send(std::size_t chip, std::size_t next, std::size_t hops,
                                    std::uint64_t bytes);
    /// Keeps what came for the L1 of a chip until its turn.
    void deliver(std::size_t chip, Arrival arrival) {
        arrived_[chip].push_back(std::move(arrival));
    }
    std::vector<Arrival> take_arrived(std::size_t chip) {
        return std::exchange(arrived_[chip], {});
    }
    /// Grows with each packet.
    std::uint64_t packets() const { return packets_; }

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
    Allocator dram_;
    Allocator l1_;
    Allocator l1_small_;
    cpu::Fabric* fabric_ = nullptr;
    std::vector<std::vector<Arrival>> arrived_;  ///< By chip.
    std::uint64_t packets_ = 0;
    std::vector<std::unique_ptr<ComputeState, ComputeStateDeleter>> compute_states_;
};

}  // namespace ttcodegen::device
