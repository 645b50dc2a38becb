#include "device/emulated_device.hpp"

#include <cstring>

namespace ttcodegen::device {

EmulatedDevice::EmulatedDevice(const Architecture& architecture, std::size_t l1_small_size,
                               std::size_t chips)
    : architecture_(architecture),
      dram_(architecture.dram_unreserved_base, architecture.dram_bank_size,
            architecture.dram_alignment, Allocator::Direction::Up),
      l1_(architecture.l1_unreserved_base, architecture.l1_size - l1_small_size,
          architecture.l1_alignment, Allocator::Direction::Down),
      l1_small_(architecture.l1_size - l1_small_size, architecture.l1_size,
                architecture.l1_alignment, Allocator::Direction::Down),
      arrived_(chips),
      compute_states_(architecture.num_workers()) {
    while (memories_.size() < chips) {
        memories_.push_back(std::make_unique<Memory>(architecture));
    }
    const L1Addresses::Turn turn = this->turn();
    // Fresh memory of the other chips is zero already.
    for (std::uint32_t worker = 0; worker < architecture.num_workers(); ++worker) {
        std::memset(memory(0).l1(worker) + architecture.zeros_base, 0, kZerosSize);
    }
}

std::optional<std::size_t> EmulatedDevice::send(std::size_t chip, std::size_t next,
                                                std::size_t hops, std::uint64_t bytes) {
    ++packets_;
    return fabric_ == nullptr ? std::nullopt : fabric_->send(chip, next, hops, bytes);
}

ComputeState* EmulatedDevice::compute_state(std::uint32_t worker) {
    auto& state = compute_states_[worker];
    if (state == nullptr) {
        state.reset(create_compute_state());
    }
    return state.get();
}

}  // namespace ttcodegen::device
