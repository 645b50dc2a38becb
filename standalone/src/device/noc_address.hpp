/// Resolution of NoC addresses, and checks of the memory there.
#pragma once

#include <span>

#include "device/run.hpp"

namespace ttcodegen::device {

enum class Access { Read, Write };

/// The memory at a NoC address.
struct NocTarget {
    std::byte* memory = nullptr;
    bool dram = false;
    CoreState* core = nullptr;  ///< Of L1; null if the program has nothing on that worker.
    std::uint32_t offset = 0;   ///< In L1, or in the DRAM bank.
};

/// The memory of `bytes` bytes at a NoC address.
/// @throws KernelFailure for coordinates without a node, and for memory that is not allocated.
NocTarget resolve(Processor& processor, std::uint64_t address, std::uint32_t bytes,
                  std::uint8_t noc, Access access, Location here);

/// The memory of a rectangle of cores, in row-major order.
/// @throws KernelFailure also for a rectangle whose corners are exchanged for its NoC.
std::vector<NocTarget> resolve_multicast(Processor& processor, std::uint64_t address,
                                         std::uint32_t bytes, std::uint8_t noc, Location here);

/// Offset in L1 of an address on the kernel's own core.
/// @throws KernelFailure if the bytes there are not all in a circular buffer, a buffer, the
/// semaphores or the zeros.
std::uint32_t own_memory(Processor& processor, std::uint32_t address, std::uint32_t bytes,
                         Access access, Location here);

}  // namespace ttcodegen::device
