/// Asynchronous reads, writes and multicasts over the NoC, and their barriers.
#pragma once

#include "ttcodegen/device/dataflow_addresses.hpp"

namespace ttcodegen::device {

inline Processor::NocState& noc_state(Processor& processor, std::uint8_t noc) {
    return processor.noc_state[noc & 1];
}

inline void start_read(std::uint64_t source, std::uint32_t destination, std::uint32_t bytes,
                       std::uint8_t noc, Location here) {
    Processor& processor = current();
    processor.functions->noc_read(processor, source, destination, bytes, noc,
                                  noc_state(processor, noc).read_transaction, here);
}

inline void start_write(std::uint32_t source, std::uint64_t destination, std::uint32_t bytes,
                        std::uint8_t noc, bool posted, std::uint32_t transaction, Location here) {
    Processor& processor = current();
    processor.functions->noc_write(processor, source, destination, bytes, noc, transaction, posted,
                                   here);
}

inline void start_multicast(std::uint32_t source, std::uint64_t destination, std::uint32_t bytes,
                            std::uint32_t receivers, bool with_source, std::uint8_t noc,
                            Location here) {
    Processor& processor = current();
    processor.functions->noc_multicast(processor, source, destination, bytes, receivers,
                                       with_source, noc, here);
}

/// The maximum size of a packet; longer transfers use the functions without "one_packet".
inline void check_packet(std::uint32_t bytes, Location here) {
    if (bytes > NOC_MAX_BURST_SIZE) {
        Processor& processor = current();
        processor.functions->fail(processor, here,
                                  "transfers %u bytes in one packet, which carries %u at most",
                                  bytes, static_cast<std::uint32_t>(NOC_MAX_BURST_SIZE));
    }
}

/// A 32-bit address, combined with the coordinates of the state that was set before.
inline std::uint64_t with_local(std::uint64_t state, std::uint32_t local) {
    return (state & ~((std::uint64_t{1} << NOC_ADDR_LOCAL_BITS) - 1)) | local;
}

}  // namespace ttcodegen::device

template <std::uint32_t max_page_size = NOC_MAX_BURST_SIZE + 1, bool enable_noc_tracing = true>
void noc_async_read(std::uint64_t src_noc_addr, std::uint32_t dst_local_l1_addr, std::uint32_t size,
                    std::uint8_t noc = noc_index,
                    std::uint32_t /*read_req_vc*/ = NOC_UNICAST_WRITE_VC, TTCODEGEN_HERE) {
    if constexpr (max_page_size <= NOC_MAX_BURST_SIZE) {
        ttcodegen::device::check_packet(size, here);
    }
    ttcodegen::device::start_read(src_noc_addr, dst_local_l1_addr, size, noc, here);
}

template <bool enable_noc_tracing = true>
void noc_async_read_one_packet(std::uint64_t src_noc_addr, std::uint32_t dst_local_l1_addr,
                               std::uint32_t size, std::uint8_t noc = noc_index,
                               std::uint32_t /*read_req_vc*/ = NOC_UNICAST_WRITE_VC,
                               TTCODEGEN_HERE) {
    ttcodegen::device::check_packet(size, here);
    ttcodegen::device::start_read(src_noc_addr, dst_local_l1_addr, size, noc, here);
}

template <bool use_vc = false>
void noc_async_read_one_packet_set_state(std::uint64_t src_noc_addr, std::uint32_t size,
                                         std::uint32_t /*vc*/ = 0, std::uint8_t noc = noc_index,
                                         TTCODEGEN_HERE) {
    ttcodegen::device::check_packet(size, here);
    auto& state = ttcodegen::device::noc_state(ttcodegen::device::current(), noc);
    state.read_address = src_noc_addr;
    state.read_bytes = size;
}

template <bool inc_num_issued = true, bool use_vc = false>
void noc_async_read_one_packet_with_state(std::uint32_t src_local_l1_addr,
                                          std::uint32_t dst_local_l1_addr, std::uint32_t /*vc*/ = 0,
                                          std::uint8_t noc = noc_index, TTCODEGEN_HERE) {
    const auto& state = ttcodegen::device::noc_state(ttcodegen::device::current(), noc);
    ttcodegen::device::start_read(
        ttcodegen::device::with_local(state.read_address, src_local_l1_addr), dst_local_l1_addr,
        state.read_bytes, noc, here);
}

inline void noc_async_read_set_state(std::uint64_t src_noc_addr, std::uint8_t noc = noc_index) {
    ttcodegen::device::noc_state(ttcodegen::device::current(), noc).read_address = src_noc_addr;
}

template <bool inc_num_issued = true>
void noc_async_read_with_state(std::uint32_t src_local_l1_addr, std::uint32_t dst_local_l1_addr,
                               std::uint32_t size, std::uint8_t noc = noc_index, TTCODEGEN_HERE) {
    const auto& state = ttcodegen::device::noc_state(ttcodegen::device::current(), noc);
    ttcodegen::device::start_read(
        ttcodegen::device::with_local(state.read_address, src_local_l1_addr), dst_local_l1_addr,
        size, noc, here);
}

inline void noc_async_read_inc_num_issued(std::uint32_t /*num_issued_reads_inc*/,
                                          std::uint8_t /*noc*/ = noc_index) {}

inline void noc_async_read_set_trid(std::uint32_t trid = 0, std::uint8_t noc = noc_index) {
    ttcodegen::device::noc_state(ttcodegen::device::current(), noc).read_transaction = trid;
}

inline void noc_async_write_set_trid(std::uint32_t trid = 0, std::uint8_t noc = noc_index) {
    ttcodegen::device::noc_state(ttcodegen::device::current(), noc).write_transaction = trid;
}

template <bool skip_ptr_update = false, bool skip_cmdbuf_chk = false>
void noc_async_read_one_packet_with_state_with_trid(std::uint32_t src_base_addr,
                                                    std::uint32_t src_addr, std::uint32_t dest_addr,
                                                    std::uint32_t trid = 0,
                                                    std::uint8_t noc = noc_index, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    const auto& state = ttcodegen::device::noc_state(processor, noc);
    processor.functions->noc_read(
        processor, ttcodegen::device::with_local(state.read_address, src_base_addr + src_addr),
        dest_addr, state.read_bytes, noc, trid, here);
}

template <std::uint32_t max_page_size = NOC_MAX_BURST_SIZE + 1, bool enable_noc_tracing = true,
          bool posted = false>
void noc_async_write(std::uint32_t src_local_l1_addr, std::uint64_t dst_noc_addr,
                     std::uint32_t size, std::uint8_t noc = noc_index,
                     std::uint32_t /*vc*/ = NOC_UNICAST_WRITE_VC, TTCODEGEN_HERE) {
    if constexpr (max_page_size <= NOC_MAX_BURST_SIZE) {
        ttcodegen::device::check_packet(size, here);
    }
    const auto& state = ttcodegen::device::noc_state(ttcodegen::device::current(), noc);
    ttcodegen::device::start_write(src_local_l1_addr, dst_noc_addr, size, noc, posted,
                                   state.write_transaction, here);
}

template <bool enable_noc_tracing = true, bool posted = false>
void noc_async_write_one_packet(std::uint32_t src_local_l1_addr, std::uint64_t dst_noc_addr,
                                std::uint32_t size, std::uint8_t noc = noc_index,
                                std::uint32_t vc = NOC_UNICAST_WRITE_VC, TTCODEGEN_HERE) {
    noc_async_write<NOC_MAX_BURST_SIZE, false, posted>(src_local_l1_addr, dst_noc_addr, size, noc,
                                                       vc, here);
}

template <bool posted = false>
void noc_async_write_one_packet_set_state(std::uint64_t dst_noc_addr, std::uint32_t size,
                                          std::uint8_t noc = noc_index,
                                          std::uint8_t /*vc*/ = NOC_UNICAST_WRITE_VC,
                                          TTCODEGEN_HERE) {
    ttcodegen::device::check_packet(size, here);
    auto& state = ttcodegen::device::noc_state(ttcodegen::device::current(), noc);
    state.write_address = dst_noc_addr;
    state.write_bytes = size;
}

template <bool posted = false>
void noc_async_write_one_packet_with_state(std::uint32_t src_local_l1_addr,
                                           std::uint32_t dst_local_l1_addr,
                                           std::uint8_t noc = noc_index, TTCODEGEN_HERE) {
    const auto& state = ttcodegen::device::noc_state(ttcodegen::device::current(), noc);
    ttcodegen::device::start_write(
        src_local_l1_addr, ttcodegen::device::with_local(state.write_address, dst_local_l1_addr),
        state.write_bytes, noc, posted, state.write_transaction, here);
}

template <bool update_counter = true, bool posted = false>
void noc_async_write_one_packet_with_trid(
    std::uint32_t src_local_l1_addr, std::uint64_t dst_noc_addr, std::uint32_t size,
    std::uint32_t trid, std::uint8_t /*cmd_buf*/ = write_cmd_buf, std::uint8_t noc = noc_index,
    std::uint8_t /*vc*/ = NOC_UNICAST_WRITE_VC, TTCODEGEN_HERE) {
    ttcodegen::device::check_packet(size, here);
    ttcodegen::device::start_write(src_local_l1_addr, dst_noc_addr, size, noc, posted, trid, here);
}

template <std::uint32_t max_page_size = NOC_MAX_BURST_SIZE + 1>
void noc_async_write_multicast(std::uint32_t src_local_l1_addr,
                               std::uint64_t dst_noc_addr_multicast, std::uint32_t size,
                               std::uint32_t num_dests, bool /*linked*/ = false,
                               std::uint8_t noc = noc_index,
                               std::uint8_t /*vc*/ = NOC_MULTICAST_WRITE_VC, TTCODEGEN_HERE) {
    if constexpr (max_page_size <= NOC_MAX_BURST_SIZE) {
        ttcodegen::device::check_packet(size, here);
    }
    ttcodegen::device::start_multicast(src_local_l1_addr, dst_noc_addr_multicast, size, num_dests,
                                       false, noc, here);
}

template <bool enable_noc_tracing = true>
void noc_async_write_multicast_one_packet(std::uint32_t src_local_l1_addr,
                                          std::uint64_t dst_noc_addr_multicast, std::uint32_t size,
                                          std::uint32_t num_dests, bool /*linked*/ = false,
                                          std::uint8_t noc = noc_index, TTCODEGEN_HERE) {
    ttcodegen::device::check_packet(size, here);
    ttcodegen::device::start_multicast(src_local_l1_addr, dst_noc_addr_multicast, size, num_dests,
                                       false, noc, here);
}

inline void noc_async_write_multicast_loopback_src(std::uint32_t src_local_l1_addr,
                                                   std::uint64_t dst_noc_addr_multicast,
                                                   std::uint32_t size, std::uint32_t num_dests,
                                                   bool /*linked*/ = false,
                                                   std::uint8_t noc = noc_index, TTCODEGEN_HERE) {
    ttcodegen::device::start_multicast(src_local_l1_addr, dst_noc_addr_multicast, size, num_dests,
                                       true, noc, here);
}

template <ttcodegen::device::AddressGenerator AddrGen, bool enable_noc_tracing = true>
void noc_async_read_page(std::uint32_t id, const AddrGen& addrgen, std::uint32_t dst_local_l1_addr,
                         std::uint32_t offset = 0, std::uint8_t noc = noc_index, TTCODEGEN_HERE) {
    ttcodegen::device::start_read(addrgen.get_noc_addr(id, offset, noc, here), dst_local_l1_addr,
                                  ttcodegen::device::page_bytes(addrgen), noc, here);
}

template <ttcodegen::device::AddressGenerator AddrGen>
void noc_async_read_tile(std::uint32_t id, const AddrGen& addrgen, std::uint32_t dst_local_l1_addr,
                         std::uint32_t offset = 0, std::uint8_t noc = noc_index, TTCODEGEN_HERE) {
    noc_async_read_page(id, addrgen, dst_local_l1_addr, offset, noc, here);
}

/// @param size Bytes; 0 means the whole page.
template <ttcodegen::device::AddressGenerator AddrGen, bool enable_noc_tracing = true,
          bool posted = false>
void noc_async_write_page(std::uint32_t id, const AddrGen& addrgen, std::uint32_t src_local_l1_addr,
                          std::uint32_t size = 0, std::uint32_t offset = 0,
                          std::uint8_t noc = noc_index, TTCODEGEN_HERE) {
    noc_async_write<NOC_MAX_BURST_SIZE + 1, false, posted>(
        src_local_l1_addr, addrgen.get_noc_addr(id, offset, noc, here),
        size == 0 ? ttcodegen::device::page_bytes(addrgen) : size, noc, NOC_UNICAST_WRITE_VC, here);
}

template <ttcodegen::device::AddressGenerator AddrGen>
void noc_async_write_tile(std::uint32_t id, const AddrGen& addrgen, std::uint32_t src_local_l1_addr,
                          std::uint8_t noc = noc_index, TTCODEGEN_HERE) {
    noc_async_write_page(id, addrgen, src_local_l1_addr, 0, 0, noc, here);
}

inline void noc_async_read_barrier(std::uint8_t noc = noc_index, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    processor.functions->noc_read_barrier(processor, noc, here);
}

inline void noc_async_write_barrier(std::uint8_t noc = noc_index, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    processor.functions->noc_write_barrier(processor, noc, false, here);
}

/// Waits until the writes have left the core: afterwards their sources may be overwritten.
inline void noc_async_writes_flushed(std::uint8_t noc = noc_index, TTCODEGEN_HERE) {
    noc_async_write_barrier(noc, here);
}

inline void noc_async_posted_writes_flushed(std::uint8_t noc = noc_index, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    processor.functions->noc_write_barrier(processor, noc, true, here);
}

inline void noc_async_atomic_barrier(std::uint8_t noc_idx = noc_index, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    processor.functions->noc_atomic_barrier(processor, noc_idx, here);
}

inline void noc_async_full_barrier(std::uint8_t noc_idx = noc_index, TTCODEGEN_HERE) {
    noc_async_read_barrier(noc_idx, here);
    noc_async_write_barrier(noc_idx, here);
    noc_async_posted_writes_flushed(noc_idx, here);
    noc_async_atomic_barrier(noc_idx, here);
}

inline void noc_async_read_barrier_with_trid(std::uint32_t trid, std::uint8_t noc = noc_index,
                                             TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    processor.functions->noc_read_barrier_transaction(processor, noc, trid, here);
}

inline void noc_async_write_barrier_with_trid(std::uint32_t trid, std::uint8_t noc = noc_index,
                                              TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    processor.functions->noc_write_barrier_transaction(processor, noc, trid, here);
}

inline void noc_async_write_flushed_with_trid(std::uint32_t trid, std::uint8_t noc = noc_index,
                                              TTCODEGEN_HERE) {
    noc_async_write_barrier_with_trid(trid, noc, here);
}
