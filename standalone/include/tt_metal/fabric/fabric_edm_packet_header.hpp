/// The header of a fabric packet: its route and its command at the destination.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tt::tt_fabric {

struct NocUnicastCommandHeader {
    std::uint64_t noc_address;
};

struct NocUnicastAtomicIncCommandHeader {
    NocUnicastAtomicIncCommandHeader(std::uint64_t noc_address_, std::uint32_t val_,
                                     bool flush_ = true)
        : noc_address(noc_address_), val(val_), flush(flush_) {}

    std::uint64_t noc_address;
    std::uint32_t val;
    bool flush;
};

/// The header that precedes the payload on a line of devices.
class alignas(16) LowLatencyPacketHeader {
  public:
    /// Routes the packet to the device that many links away.
    volatile LowLatencyPacketHeader* to_chip_unicast(std::uint8_t distance_in_hops) volatile {
        hops_ = distance_in_hops;
        return this;
    }
    /// Writes the payload of `payload_size_bytes` to an address of the device.
    volatile LowLatencyPacketHeader* to_noc_unicast_write(
        const NocUnicastCommandHeader& noc_unicast_command_header,
        std::size_t payload_size_bytes) volatile {
        address_ = noc_unicast_command_header.noc_address;
        bytes_ = static_cast<std::uint32_t>(payload_size_bytes);
        increment_ = 0;
        return this;
    }
    /// Increments a word of the device; the packet has no payload.
    volatile LowLatencyPacketHeader* to_noc_unicast_atomic_inc(
        const NocUnicastAtomicIncCommandHeader& noc_unicast_atomic_inc_command_header) volatile {
        address_ = noc_unicast_atomic_inc_command_header.noc_address;
        bytes_ = 0;
        increment_ = noc_unicast_atomic_inc_command_header.val;
        return this;
    }

    std::uint64_t address() const volatile { return address_; }
    std::uint32_t payload_bytes() const volatile { return bytes_; }
    std::uint32_t increment() const volatile { return increment_; }
    std::uint32_t hops() const volatile { return hops_; }

  private:
    std::uint64_t address_;
    std::uint32_t bytes_;
    std::uint32_t increment_;
    std::uint32_t hops_;
    std::uint32_t unused_[11];
};

static_assert(sizeof(LowLatencyPacketHeader) == 64);

}  // namespace tt::tt_fabric

#define PACKET_HEADER_TYPE tt::tt_fabric::LowLatencyPacketHeader
