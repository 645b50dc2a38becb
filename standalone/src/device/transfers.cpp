#include "device/transfers.hpp"

#include <algorithm>
#include <cstring>

#include "device/diagnostics.hpp"
#include "device/noc_address.hpp"

namespace ttcodegen::device {

namespace {

/// Checks that both ends of a transfer have the same alignment within the alignment unit of the far
/// memory.
void check_alignment(Processor& processor, const NocTarget& far, std::uint32_t own, Access access,
                     Location here) {
    const Architecture& architecture = ProcessorState::of(processor).run->architecture();
    // Writes to DRAM have the alignment requirement of L1 (noc_parameters.h).
    const std::uint32_t unit = far.dram && access == Access::Read ? architecture.dram_read_alignment
                                                                  : architecture.l1_alignment;
    if (far.offset % unit != own % unit) {
        fail(
            processor, here,
            "%s between L1 offset 0x%x and %s offset 0x%x: they must be equal modulo %u, since the "
            "NoC moves whole units",
            access == Access::Read ? "reads" : "writes", own, far.dram ? "DRAM" : "L1", far.offset,
            unit);
    }
}

void check_length(Processor& processor, std::uint32_t bytes, Location here) {
    if (bytes == 0) {
        fail(processor, here, "transfers 0 bytes");
    }
}

void check_data(Processor& processor, const std::byte* memory, std::uint32_t bytes,
                const NocTarget* far, std::uint32_t own, Location here) {
    std::size_t marked = 0;
    const Written written = find_mark(memory, bytes, marked);
    if (written == Written::Yes) {
        return;
    }
    const ProcessorState& state = ProcessorState::of(processor);
    std::string place;
    if (far != nullptr && far->dram) {
        place = format("DRAM address 0x%x", far->offset);
    } else if (far != nullptr) {
        place = describe_l1(*far->core, state, far->offset);
    } else {
        place = describe_l1(*state.core, state, own);
    }
    fail(processor, here, "sends %u bytes from %s, whose byte %zu %s", bytes, place.c_str(), marked,
         written == Written::Never
             ? "nobody wrote"
             : "a read has not brought yet: noc_async_read_barrier is missing");
}

/// Checks that a write does not overwrite pages that a core has received and not popped yet: the
/// sender must know that the receiver has space.
void check_room(Processor& processor, const NocTarget& far, std::uint32_t bytes, Location here) {
    const ProcessorState& state = ProcessorState::of(processor);
    if (far.core == nullptr || far.core == state.core) {
        return;
    }
    for (const Region& region : far.core->regions) {
        if (region.kind != Region::Kind::CircularBuffer || far.offset < region.begin ||
            far.offset >= region.end) {
            continue;
        }
        const CircularBuffer& buffer = far.core->circular_buffers[region.index];
        const std::uint32_t held = buffer.pages_received - buffer.pages_acked;
        if (buffer.borrowed || held == 0) {
            continue;
        }
        const std::uint32_t first = (far.offset - region.begin) / buffer.page_size;
        const std::uint32_t last = (far.offset + bytes - 1 - region.begin) / buffer.page_size;
        for (std::uint32_t page = first; page <= last; ++page) {
            const std::uint32_t oldest = buffer.pages_acked % buffer.num_pages;
            if ((page + buffer.num_pages - oldest) % buffer.num_pages < held) {
                fail(
                    processor, here,
                    "writes to page %u of %s of core (x=%zu,y=%zu), which that core has not popped "
                    "yet: it must say that it has room, with a semaphore",
                    page, describe_circular_buffer(state, region.index).c_str(),
                    far.core->logical.x, far.core->logical.y);
            }
        }
    }
}

void complete(ProcessorState& state, const PendingRead& read) {
    std::size_t marked = 0;
    const Written written = find_mark(read.source, read.bytes, marked);
    if (written != Written::Yes) {
        const auto from = reinterpret_cast<std::uintptr_t>(read.source);
        const auto arena = reinterpret_cast<std::uintptr_t>(state.run->memory().l1_arena().data());
        const bool l1 = from >= arena && from - arena < state.run->memory().l1_arena().size();
        fail(state.processor, read.here, "reads %u bytes of %s, of which byte %zu was %s",
             read.bytes, l1 ? "L1" : "DRAM", marked,
             written == Written::Never ? "never written" : "still in flight to there");
    }
    std::memcpy(read.destination, read.source, read.bytes);
}

template <typename Condition>
void complete_reads(Processor& processor, Condition condition) {
    ProcessorState& state = ProcessorState::of(processor);
    if (state.reads.empty()) {
        return;
    }
    auto kept = state.reads.begin();
    for (auto read = state.reads.begin(); read != state.reads.end(); ++read) {
        if (condition(*read)) {
            complete(state, *read);
        } else {
            *kept++ = *read;
        }
    }
    state.reads.erase(kept, state.reads.end());
}

}  // namespace

void check_not_sending(Processor& processor, std::uint32_t begin, std::uint32_t end,
                       const char* action, Location here) {
    for (const PendingWrite& write : ProcessorState::of(processor).writes) {
        if (write.begin < end && begin < write.end) {
            fail(processor, here,
                 "%s memory that the asynchronous write of line %u may still be sending: "
                 "noc_async_write_barrier or noc_async_writes_flushed is missing",
                 action, write.here.line());
        }
    }
}

void noc_read(Processor& processor, std::uint64_t source, std::uint32_t destination,
              std::uint32_t bytes, std::uint8_t noc, std::uint32_t transaction, Location here) {
    check_length(processor, bytes, here);
    const NocTarget far = resolve(processor, source, bytes, noc, Access::Read, here);
    const std::uint32_t own = own_memory(processor, destination, bytes, Access::Write, here);
    check_alignment(processor, far, own, Access::Read, here);
    ProcessorState& state = ProcessorState::of(processor);
    if (!state.writes.empty()) {
        check_not_sending(processor, own, own + bytes, "reads into", here);
    }
    mark_in_flight(processor.l1 + own, bytes);
    state.reads.push_back({far.memory, processor.l1 + own, bytes, transaction, noc, here});
    processor.counters.noc_read_bytes += bytes;
    if (far.dram) {
        processor.counters.dram_read_bytes += bytes;
    } else if (far.core == state.core) {
        processor.counters.own_l1_bytes += bytes;
    }
}

void noc_write(Processor& processor, std::uint32_t source, std::uint64_t destination,
               std::uint32_t bytes, std::uint8_t noc, std::uint32_t transaction, bool posted,
               Location here) {
    check_length(processor, bytes, here);
    const NocTarget far = resolve(processor, destination, bytes, noc, Access::Write, here);
    const std::uint32_t own = own_memory(processor, source, bytes, Access::Read, here);
    check_alignment(processor, far, own, Access::Write, here);
    check_data(processor, processor.l1 + own, bytes, nullptr, own, here);
    check_room(processor, far, bytes, here);
    // Data arrives at once: later commands on the same NoC, such as semaphores, follow it.
    std::memmove(far.memory, processor.l1 + own, bytes);
    ProcessorState& state = ProcessorState::of(processor);
    state.writes.push_back({own, own + bytes, transaction, noc, posted, here});
    processor.counters.noc_written_bytes += bytes;
    if (far.dram) {
        processor.counters.dram_written_bytes += bytes;
    } else {
        if (far.core == state.core) {
            processor.counters.own_l1_bytes += bytes;
        }
        state.run->wake(*far.core);
    }
}

void fabric_send(Processor& processor, const FabricPacket& packet, Location here) {
    ProcessorState& state = ProcessorState::of(processor);
    EmulatedDevice& device = state.run->device();
    const auto chip = device.send(state.run->chip(), packet.next, packet.hops,
                                  packet.header_bytes + packet.bytes);
    if (!chip) {
        fail(processor, here,
             "sends a packet over %u links from chip %zu on, the first to chip %u: the line is "
             "shorter",
             packet.hops, state.run->chip(), packet.next);
    }
    if (packet.bytes > kFabricPayloadBytes) {
        fail(processor, here, "sends a packet of %u bytes: it carries %u at most", packet.bytes,
             kFabricPayloadBytes);
    }
    const std::uint32_t header =
        own_memory(processor, packet.header, packet.header_bytes, Access::Read, here);
    state.writes.push_back({header, header + packet.header_bytes, kNoTransaction, processor.noc,
                            /*posted=*/false, here});
    // Addresses are the same on all chips, so this chip's allocations can be checked.
    const std::uint32_t bytes = packet.bytes == 0 ? 4 : packet.bytes;
    const NocTarget far = resolve(processor, packet.address, bytes, 0, Access::Write, here);
    if (packet.bytes == 0) {
        if (far.dram) {
            fail(processor, here, "increments a word of DRAM");
        }
        device.deliver(*chip, {far.memory, far.core->worker, {}, packet.increment});
        return;
    }
    const std::uint32_t own = own_memory(processor, packet.source, bytes, Access::Read, here);
    check_alignment(processor, far, own, Access::Write, here);
    const std::byte* payload = processor.l1 + own;
    check_data(processor, payload, bytes, nullptr, own, here);
    state.writes.push_back(
        {own, own + bytes, kNoTransaction, processor.noc, /*posted=*/false, here});
    if (far.dram) {
        std::memcpy(device.dram_of(*chip) + (far.memory - state.run->memory().dram(0)), payload,
                    bytes);
        processor.counters.dram_written_bytes += bytes;
    } else {
        device.deliver(*chip, {far.memory, far.core->worker, {payload, payload + bytes}, 0});
    }
}

void noc_multicast(Processor& processor, std::uint32_t source, std::uint64_t destination,
                   std::uint32_t bytes, std::uint32_t receivers, bool with_source, std::uint8_t noc,
                   Location here) {
    check_length(processor, bytes, here);
    const auto targets = resolve_multicast(processor, destination, bytes, noc, here);
    const std::uint32_t own = own_memory(processor, source, bytes, Access::Read, here);
    check_alignment(processor, targets.front(), own, Access::Write, here);
    check_data(processor, processor.l1 + own, bytes, nullptr, own, here);
    ProcessorState& state = ProcessorState::of(processor);
    const bool inside = std::any_of(targets.begin(), targets.end(), [&](const NocTarget& target) {
        return target.core == state.core;
    });
    if (inside && !with_source) {
        fail(
            processor, here,
            "multicasts to a rectangle with the sender in it: that takes the function that ends in "
            "_loopback_src");
    }
    if (receivers != targets.size()) {
        fail(processor, here, "multicasts to a rectangle of %zu cores, but says that there are %u",
             targets.size(), receivers);
    }
    for (const NocTarget& target : targets) {
        check_room(processor, target, bytes, here);
        std::memmove(target.memory, processor.l1 + own, bytes);
        state.run->wake(*target.core);
    }
    state.writes.push_back({own, own + bytes, kNoTransaction, noc, false, here});
    processor.counters.noc_written_bytes += std::uint64_t{bytes} * targets.size();
}

void noc_write_word(Processor& processor, std::uint64_t destination, std::uint32_t value,
                    std::uint8_t byte_enable, std::uint8_t noc, Location here) {
    const NocTarget far = resolve(processor, destination, 4, noc, Access::Write, here);
    if (far.dram || far.offset % 4 != 0) {
        fail(processor, here, "writes a word to %s", far.dram ? "DRAM" : "an unaligned address");
    }
    for (unsigned i = 0; i < 4; ++i) {
        if ((byte_enable >> i & 1) != 0) {
            far.memory[i] = static_cast<std::byte>(value >> (8 * i));
        }
    }
    ProcessorState& state = ProcessorState::of(processor);
    processor.counters.noc_written_bytes += 4;
    // The value travels in the packet, so no source has to stay unchanged; it only has to leave.
    state.writes.push_back({0, 0, kNoTransaction, noc, false, here});
    state.run->wake(*far.core);
}

namespace {

void increment_at(Processor& processor, const NocTarget& far, std::uint32_t increment,
                  Location here) {
    if (far.dram || far.offset % 4 != 0) {
        fail(processor, here, "increments %s", far.dram ? "DRAM" : "an unaligned address");
    }
    std::uint32_t value;
    std::memcpy(&value, far.memory, 4);
    value += increment;
    std::memcpy(far.memory, &value, 4);
    ProcessorState::of(processor).run->wake(*far.core);
}

}  // namespace

void noc_increment(Processor& processor, std::uint64_t destination, std::uint32_t increment,
                   std::uint8_t noc, bool posted, Location here) {
    increment_at(processor, resolve(processor, destination, 4, noc, Access::Write, here), increment,
                 here);
    ProcessorState& state = ProcessorState::of(processor);
    if (!posted) {
        ++state.pending_atomics[noc];
        state.last_atomic = here;
    }
}

void noc_increment_multicast(Processor& processor, std::uint64_t destination,
                             std::uint32_t increment, std::uint32_t receivers, std::uint8_t noc,
                             bool posted, Location here) {
    const auto targets = resolve_multicast(processor, destination, 4, noc, here);
    if (receivers != targets.size()) {
        fail(processor, here, "increments in a rectangle of %zu cores, but says that there are %u",
             targets.size(), receivers);
    }
    for (const NocTarget& target : targets) {
        increment_at(processor, target, increment, here);
    }
    ProcessorState& state = ProcessorState::of(processor);
    if (!posted) {
        ++state.pending_atomics[noc];
        state.last_atomic = here;
    }
}

void noc_read_barrier(Processor& processor, std::uint8_t noc, Location) {
    complete_reads(processor, [noc](const PendingRead& read) { return read.noc == noc; });
}

void noc_write_barrier(Processor& processor, std::uint8_t noc, bool posted, Location) {
    std::erase_if(ProcessorState::of(processor).writes, [=](const PendingWrite& write) {
        return write.noc == noc && write.posted == posted;
    });
}

void noc_atomic_barrier(Processor& processor, std::uint8_t noc, Location here) {
    if (noc > 1) {
        fail(processor, here, "there is no NoC %u: there are 0 and 1", noc);
    }
    ProcessorState::of(processor).pending_atomics[noc] = 0;
}

void noc_read_barrier_transaction(Processor& processor, std::uint8_t noc, std::uint32_t transaction,
                                  Location) {
    complete_reads(processor, [=](const PendingRead& read) {
        return read.noc == noc && read.transaction == transaction;
    });
}

void noc_write_barrier_transaction(Processor& processor, std::uint8_t noc,
                                   std::uint32_t transaction, Location) {
    std::erase_if(ProcessorState::of(processor).writes, [=](const PendingWrite& write) {
        return write.noc == noc && write.transaction == transaction;
    });
}

std::uint64_t bank_address(Processor& processor, bool dram, std::uint32_t bank,
                           std::uint32_t offset, std::uint8_t noc, Location here) {
    const ProcessorState& state = ProcessorState::of(processor);
    const Architecture& architecture = state.run->architecture();
    const std::uint32_t banks = dram ? static_cast<std::uint32_t>(architecture.dram_banks.size())
                                     : architecture.num_workers();
    if (bank >= banks) {
        fail(processor, here, "there is no %s bank %u: there are %u", dram ? "DRAM" : "L1", bank,
             banks);
    }
    CoreCoord node;
    std::uint64_t local = offset;
    if (dram) {
        node = architecture.dram_banks[bank].noc[noc];
        local += architecture.dram_banks[bank].address_offset;
    } else {
        node = architecture.worker_to_noc(
            {bank % architecture.worker_grid.x, bank / architecture.worker_grid.x});
    }
    return (std::uint64_t{node.y} << (kNocAddressBits + kNocNodeBits)) |
           (std::uint64_t{node.x} << kNocAddressBits) | local;
}

}  // namespace ttcodegen::device
