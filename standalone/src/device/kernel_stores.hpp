/// What kernels' own stores may reach: memory that the program has on the core itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "device/run.hpp"

namespace ttcodegen::device {

/// What is wrong with an access to L1 through a pointer; `action` is "stores" or "reads".
std::string describe_stray(const ProcessorState& state, std::uintptr_t address, std::size_t bytes,
                           const char* action);

/// Under AddressSanitizer: lets kernels' reads and stores end the process with a report, which
/// says the core and the kernel too, where the program has nothing; until it is destroyed.
/// Otherwise it does nothing: stores are checked one by one.
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
