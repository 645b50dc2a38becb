/// A kernel's connection to an ethernet core that sends packets to a neighbour of its device.
#pragma once

#include "api/dataflow/dataflow_api.h"
#include "tt_metal/fabric/fabric_edm_packet_header.hpp"

namespace tt::tt_fabric {

class WorkerToFabricEdmSender {
  public:
    /// Reads the arguments of append_fabric_connection_rt_args: the neighbour, and two semaphores.
    template <ProgrammableCoreType my_core_type>
    static WorkerToFabricEdmSender build_from_args(std::size_t& arg_idx) {
        WorkerToFabricEdmSender sender;
        sender.next_ = get_arg_val<std::uint32_t>(static_cast<int>(arg_idx));
        arg_idx += 3;
        return sender;
    }

    void open() { is_open_ = true; }
    template <bool SEND_CREDIT_ADDR = false>
    void open_start() {}
    void open_finish() { open(); }
    void close() { is_open_ = false; }
    void close_start() {}
    void close_finish() { close(); }

    void wait_for_empty_write_slot(TTCODEGEN_HERE) const { require_open(here); }

    /// Sends the payload of the packet whose header is sent next.
    void send_payload_without_header_non_blocking_from_address(std::uint32_t source_address,
                                                               std::size_t size_bytes,
                                                               TTCODEGEN_HERE) {
        require_open(here);
        payload_ = source_address;
        payload_bytes_ = static_cast<std::uint32_t>(size_bytes);
    }
    /// Sends the header, which completes the packet; afterwards both may be overwritten.
    void send_payload_flush_blocking_from_address(std::uint32_t source_address,
                                                  std::size_t size_bytes, TTCODEGEN_HERE) {
        send(source_address, size_bytes, here);
        auto& processor = ttcodegen::device::current();
        processor.functions->noc_write_barrier(processor, processor.noc, false, here);
    }
    /// The same, but they may be overwritten only after noc_async_writes_flushed.
    void send_payload_flush_non_blocking_from_address(std::uint32_t source_address,
                                                      std::size_t size_bytes, TTCODEGEN_HERE) {
        send(source_address, size_bytes, here);
    }

  private:
    void require_open(ttcodegen::device::Location here) const {
        if (!is_open_) {
            auto& processor = ttcodegen::device::current();
            processor.functions->fail(processor, here,
                                      "uses a connection to the fabric that is not open");
        }
    }

    void send(std::uint32_t header_address, std::size_t size_bytes,
              ttcodegen::device::Location here) {
        require_open(here);
        auto& processor = ttcodegen::device::current();
        if (size_bytes != sizeof(PACKET_HEADER_TYPE)) {
            processor.functions->fail(processor, here, "sends a packet header of %zu bytes",
                                      size_bytes);
        }
        const auto* header = reinterpret_cast<const volatile PACKET_HEADER_TYPE*>(
            ttcodegen::device::l1_pointer(processor, header_address, size_bytes, here));
        if (header->payload_bytes() != payload_bytes_) {
            processor.functions->fail(processor, here,
                                      "sends a packet of %u bytes with a header for %u",
                                      payload_bytes_, header->payload_bytes());
        }
        processor.functions->fabric_send(processor,
                                         {.next = next_,
                                          .hops = header->hops(),
                                          .address = header->address(),
                                          .header = header_address,
                                          .header_bytes = static_cast<std::uint32_t>(size_bytes),
                                          .source = payload_,
                                          .bytes = payload_bytes_,
                                          .increment = header->increment()},
                                         here);
        payload_bytes_ = 0;
    }

    std::uint32_t next_ = 0;
    std::uint32_t payload_ = 0;
    std::uint32_t payload_bytes_ = 0;
    bool is_open_ = false;
};

}  // namespace tt::tt_fabric
