// Exchange of pages among the devices of a line: each sends a share of its pages of a tensor to
// other devices of the line, or to itself.
#include <cstdint>

#include "api/dataflow/dataflow_api.h"
#include "api/tensor/tensor_accessor.h"
#include "tt_metal/fabric/hw/inc/edm_fabric/fabric_connection_manager.hpp"
#include "tt_metal/fabric/hw/inc/linear/addrgen_api.h"

// The pages of a share: runs of consecutive pages, `stride` pages apart.
struct Share {
    uint32_t first;
    uint32_t run;
    uint32_t stride;

    uint32_t page(uint32_t index) const { return first + index / run * stride + index % run; }
};

// Sends packets to another device of the line.
struct Link {
    tt::tt_fabric::WorkerToFabricEdmSender& sender;
    volatile PACKET_HEADER_TYPE* header;

    // Sends a header without payload that increments the semaphore of the core at this position.
    void signal(uint32_t semaphore) {
        header->to_noc_unicast_atomic_inc(
            tt::tt_fabric::NocUnicastAtomicIncCommandHeader(get_noc_addr(semaphore), 1));
        sender.wait_for_empty_write_slot();
        flush();
    }

    // Waits until the header, and all packets before it, have left the core.
    void flush() {
        sender.send_payload_flush_blocking_from_address(
            static_cast<uint32_t>(reinterpret_cast<uintptr_t>(header)), sizeof(PACKET_HEADER_TYPE));
    }
};

// A set of devices of the line: one bit for each, by position.
struct Chips {
    uint32_t bits;

    bool has(uint32_t place) const { return (bits >> place & 1) != 0; }

    // Calls `visit` with each position but one, and returns the number of calls.
    template <typename Visit>
    uint32_t for_others(uint32_t place, Visit visit) const {
        uint32_t count = 0;
        uint32_t chip = 0;
        for (uint32_t rest = bits; rest != 0; rest >>= 1, ++chip) {
            if ((rest & 1) != 0 && chip != place) {
                visit(chip);
                ++count;
            }
        }
        return count;
    }
};

void fill_with_zeros(uint32_t address, uint32_t bytes) {
    auto* words = reinterpret_cast<volatile tt_l1_ptr uint32_t*>(address);
    for (uint32_t index = 0; index < bytes / sizeof(uint32_t); ++index) {
        words[index] = 0;
    }
}

void wait_and_reset(uint32_t semaphore, uint32_t count) {
    auto* word = reinterpret_cast<volatile tt_l1_ptr uint32_t*>(semaphore);
    noc_semaphore_wait(word, count);
    noc_semaphore_set(word, 0);
}

void kernel_main() {
    constexpr uint32_t cb_page = get_named_compile_time_arg_val("cb_page");
    constexpr uint32_t cb_header = get_named_compile_time_arg_val("cb_header");
    constexpr uint32_t page_size = get_named_compile_time_arg_val("page_size");
    // Pages that a device sends to another one.
    constexpr uint32_t pages = get_named_compile_time_arg_val("pages");
    constexpr uint32_t source_run = get_named_compile_time_arg_val("source_run");
    constexpr uint32_t target_run = get_named_compile_time_arg_val("target_run");
    constexpr bool divides = get_named_compile_time_arg_val("divides") != 0;
    constexpr bool joins = get_named_compile_time_arg_val("joins") != 0;
    constexpr bool connects = get_named_compile_time_arg_val("connects") != 0;
    constexpr uint32_t chips = get_named_compile_time_arg_val("chips");
    constexpr auto source_layout = TensorAccessorArgs<0>();
    constexpr auto target_layout =
        TensorAccessorArgs<source_layout.next_compile_time_args_offset()>();

    // Runtime arguments; those of the connections follow.
    const auto source = TensorAccessor(source_layout, get_arg_val<uint32_t>(0), page_size);
    const auto target = TensorAccessor(target_layout, get_arg_val<uint32_t>(1), page_size);
    const uint32_t ready_semaphore = get_arg_val<uint32_t>(2);
    const uint32_t arrived_semaphore = get_arg_val<uint32_t>(3);
    const uint32_t place = get_arg_val<uint32_t>(4);
    const Chips takers{get_arg_val<uint32_t>(5)};
    const Chips givers{get_arg_val<uint32_t>(6)};
    std::size_t connection_arguments = 7;

    const uint32_t page = get_write_ptr(cb_page);
    const uint32_t header_address = get_write_ptr(cb_header);
    auto* header = reinterpret_cast<volatile PACKET_HEADER_TYPE*>(header_address);
    const Share put = {joins ? place * target_run : 0, target_run,
                       joins ? chips * target_run : target_run};
    const auto taken_for = [&](uint32_t chip) {
        return Share{divides ? chip * source_run : 0, source_run,
                     divides ? chips * source_run : source_run};
    };

    // The device's own share; zeros if no device sends it one.
    if (takers.has(place) || givers.bits == 0) {
        const Share own = taken_for(place);
        if (givers.bits == 0) {
            fill_with_zeros(page, page_size);
        }
        for (uint32_t index = 0; index < pages; ++index) {
            if (givers.bits != 0) {
                noc_async_read_page(own.page(index), source, page);
                noc_async_read_barrier();
            }
            noc_async_write_page(put.page(index), target, page);
            noc_async_write_barrier();
        }
    }
    if constexpr (!connects) {
        return;
    }

    auto connections = FabricConnectionManager::build_from_args(connection_arguments);
    connections.open();
    const auto link_to = [&](uint32_t chip) {
        header->to_chip_unicast(static_cast<uint8_t>(chip > place ? chip - place : place - chip));
        return Link{chip > place ? connections.get_forward_connection()
                                 : connections.get_backward_connection(),
                    header};
    };

    // A device is ready once its earlier programs no longer use the target's memory.
    const uint32_t arriving =
        givers.for_others(place, [&](uint32_t chip) { link_to(chip).signal(ready_semaphore); });
    const uint32_t leaving = takers.for_others(place, [](uint32_t) {});
    wait_and_reset(ready_semaphore, leaving);
    takers.for_others(place, [&](uint32_t chip) {
        auto link = link_to(chip);
        const Share taken = taken_for(chip);
        for (uint32_t index = 0; index < pages; ++index) {
            noc_async_read_page(taken.page(index), source, page);
            noc_async_read_barrier();
            tt::tt_fabric::linear::to_noc_unicast_write(page_size, header, put.page(index), target);
            link.sender.wait_for_empty_write_slot();
            link.sender.send_payload_without_header_non_blocking_from_address(page, page_size);
            link.flush();
        }
        link.signal(arrived_semaphore);
    });
    wait_and_reset(arrived_semaphore, arriving);
    connections.close();
}
