/// NoC transfers, as requested by the kernel API.
#pragma once

#include "device/run.hpp"

namespace ttcodegen::device {

void noc_read(Processor&, std::uint64_t source, std::uint32_t destination, std::uint32_t bytes,
              std::uint8_t noc, std::uint32_t transaction, Location);
void noc_write(Processor&, std::uint32_t source, std::uint64_t destination, std::uint32_t bytes,
               std::uint8_t noc, std::uint32_t transaction, bool posted, Location);
void noc_multicast(Processor&, std::uint32_t source, std::uint64_t destination, std::uint32_t bytes,
                   std::uint32_t receivers, bool with_source, std::uint8_t noc, Location);
void noc_write_word(Processor&, std::uint64_t destination, std::uint32_t value,
                    std::uint8_t byte_enable, std::uint8_t noc, Location);
void noc_increment(Processor&, std::uint64_t destination, std::uint32_t increment, std::uint8_t noc,
                   bool posted, Location);
void noc_increment_multicast(Processor&, std::uint64_t destination, std::uint32_t increment,
                             std::uint32_t receivers, std::uint8_t noc, bool posted, Location);
void noc_read_barrier(Processor&, std::uint8_t noc, Location);
void noc_write_barrier(Processor&, std::uint8_t noc, bool posted, Location);
void noc_atomic_barrier(Processor&, std::uint8_t noc, Location);
void noc_read_barrier_transaction(Processor&, std::uint8_t noc, std::uint32_t transaction,
                                  Location);
void noc_write_barrier_transaction(Processor&, std::uint8_t noc, std::uint32_t transaction,
                                   Location);
std::uint64_t bank_address(Processor&, bool dram, std::uint32_t bank, std::uint32_t offset,
                           std::uint8_t noc, Location);

void fabric_send(Processor&, const FabricPacket&, Location);

/// Checks that a processor's own store to L1 does not change data that is being sent.
void check_not_sending(Processor&, std::uint32_t begin, std::uint32_t end, const char* action,
                       Location);

// Layout of a NoC address: 36 bits of address, then 6 bits each of x and y.
inline constexpr unsigned kNocAddressBits = 36;
inline constexpr unsigned kNocNodeBits = 6;

}  // namespace ttcodegen::device
