#pragma once

#include <cstdint>

#include "tt-metalium/circular_buffer_constants.h"
#include "ttcodegen/device/processor.hpp"

/// The firmware's state of a core's circular buffer. Compute kernels count memory in units of 16
/// bytes, data movement kernels in bytes.
struct LocalCBInterface {
    std::uint32_t fifo_size;
    std::uint32_t fifo_limit;
    std::uint32_t fifo_page_size;
    std::uint32_t fifo_num_pages;
    std::uint32_t fifo_rd_ptr;
    std::uint32_t fifo_wr_ptr;
    std::uint16_t tiles_acked;
    std::uint16_t tiles_received;
    std::uint32_t fifo_wr_tile_ptr;
};

#ifdef COMPILE_FOR_TRISC
constexpr std::uint32_t cb_addr_shift = CIRCULAR_BUFFER_COMPUTE_ADDR_SHIFT;
#else
constexpr std::uint32_t cb_addr_shift = 0;
#endif

/// A snapshot of the buffer's state; writes to it have no effect.
/// @throws the error of `fail`, if the core has no such circular buffer.
inline LocalCBInterface& get_local_cb_interface(
    std::uint32_t cb_id,
    ttcodegen::device::Location here = ttcodegen::device::Location::current()) {
    static LocalCBInterface interfaces[ttcodegen::device::kMaxCircularBuffers];
    auto& processor = ttcodegen::device::current();
    if (cb_id >= processor.num_circular_buffers ||
        processor.circular_buffers[cb_id].pages == nullptr) {
        processor.functions->fail(processor, here,
                                  "circular buffer %u was not created on this core", cb_id);
    }
    const auto& buffer = processor.circular_buffers[cb_id];
    const auto& view = processor.views[cb_id];
    const auto base = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(buffer.pages));
    LocalCBInterface& interface = interfaces[cb_id];
    interface.fifo_size = buffer.size >> cb_addr_shift;
    interface.fifo_limit = (base + buffer.size) >> cb_addr_shift;
    interface.fifo_page_size = buffer.page_size >> cb_addr_shift;
    interface.fifo_num_pages = buffer.num_pages;
    interface.fifo_rd_ptr = (base + view.read_offset) >> cb_addr_shift;
    interface.fifo_wr_ptr = (base + view.write_offset) >> cb_addr_shift;
    interface.tiles_acked = static_cast<std::uint16_t>(buffer.pages_acked);
    interface.tiles_received = static_cast<std::uint16_t>(buffer.pages_received);
    interface.fifo_wr_tile_ptr = 0;
    return interface;
}
