/// Checks of kernels' own stores: the memory of the program on the core itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "device/run.hpp"

namespace ttcodegen::device {

/// The error of an access to L1 through a pointer; `action` is "stores" or "reads".
std::string describe_stray(const ProcessorState& state, std::uintptr_t address, std::size_t bytes,
                           const char* action);

/// Under AddressSanitizer: poisons L1 outside of the program's memory until it is destroyed, so
/// that kernels' reads and stores there end the process with a report of core and kernel. Otherwise
/// without effect: stores are checked one by one.
class PoisonedMemory {
  public:
    explicit PoisonedMemory(Run& run);
    ~PoisonedMemory();
    PoisonedMemory(const PoisonedMemory&) = delete;
    PoisonedMemory& operator=(const PoisonedMemory&) = delete;

  private:
    Run& run_;
};

}  // namespace ttcodegen::device
