/// The circular buffer API of data movement kernels.
#pragma once

#include "ttcodegen/device/dataflow_types.hpp"

namespace ttcodegen::device {

/// @throws the error of `fail`, if the core has no such circular buffer.
inline const CircularBuffer& circular_buffer(Processor& processor, std::uint32_t cb,
                                             Location here) {
    if (cb >= processor.num_circular_buffers || processor.circular_buffers[cb].pages == nullptr) {
        processor.functions->fail(processor, here,
                                  "circular buffer %u was not created on this core", cb);
    }
    return processor.circular_buffers[cb];
}

inline std::uint32_t address_in(const CircularBuffer& buffer, std::uint32_t offset) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(buffer.pages)) + offset;
}

}  // namespace ttcodegen::device

FORCE_INLINE void cb_reserve_back(std::int32_t operand, std::int32_t num_pages, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    processor.functions->cb_reserve_back(processor, static_cast<std::uint32_t>(operand),
                                         static_cast<std::uint32_t>(num_pages), here);
}

FORCE_INLINE void cb_push_back(std::int32_t operand, std::int32_t num_pages, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    processor.functions->cb_push_back(processor, static_cast<std::uint32_t>(operand),
                                      static_cast<std::uint32_t>(num_pages), here);
}

FORCE_INLINE void cb_wait_front(std::int32_t operand, std::int32_t num_pages, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    processor.functions->cb_wait_front(processor, static_cast<std::uint32_t>(operand),
                                       static_cast<std::uint32_t>(num_pages), here);
}

FORCE_INLINE void cb_pop_front(std::int32_t operand, std::int32_t num_pages, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    processor.functions->cb_pop_front(processor, static_cast<std::uint32_t>(operand),
                                      static_cast<std::uint32_t>(num_pages), here);
}

/// Returns whether so many pages are free. Yields to other processors, since kernels poll it.
inline bool cb_pages_reservable_at_back(std::int32_t operand, std::int32_t num_pages,
                                        TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    const auto& buffer =
        ttcodegen::device::circular_buffer(processor, static_cast<std::uint32_t>(operand), here);
    processor.functions->yield(processor, here);
    const std::uint32_t held = buffer.pages_received - buffer.pages_acked;
    return static_cast<std::uint32_t>(num_pages) <= buffer.num_pages - held;
}

inline bool cb_pages_available_at_front(std::int32_t operand, std::int32_t num_pages,
                                        TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    const auto& buffer =
        ttcodegen::device::circular_buffer(processor, static_cast<std::uint32_t>(operand), here);
    processor.functions->yield(processor, here);
    return static_cast<std::uint32_t>(num_pages) <= buffer.pages_received - buffer.pages_acked;
}

/// The address of the first reserved page.
inline std::uint32_t get_write_ptr(std::uint32_t operand, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    const auto& buffer = ttcodegen::device::circular_buffer(processor, operand, here);
    return ttcodegen::device::address_in(buffer, processor.views[operand].write_offset);
}

/// The address of the first page that was waited for.
inline std::uint32_t get_read_ptr(std::uint32_t operand, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    const auto& buffer = ttcodegen::device::circular_buffer(processor, operand, here);
    return ttcodegen::device::address_in(buffer, processor.views[operand].read_offset);
}

/// A processor's state of a circular buffer, in bytes.
struct LocalCBInterface {
    std::uint32_t fifo_size;
    std::uint32_t fifo_limit;
    std::uint32_t fifo_page_size;
    std::uint32_t fifo_num_pages;
    std::uint32_t fifo_rd_ptr;
    std::uint32_t fifo_wr_ptr;
};

/// A copy: only cb_push_back and cb_pop_front move the pointers.
inline LocalCBInterface get_local_cb_interface(std::uint32_t cb_id, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    const auto& buffer = ttcodegen::device::circular_buffer(processor, cb_id, here);
    return {buffer.size,
            ttcodegen::device::address_in(buffer, buffer.size),
            buffer.page_size,
            buffer.num_pages,
            get_read_ptr(cb_id, here),
            get_write_ptr(cb_id, here)};
}

/// The size in bytes of a tile in the format of a circular buffer.
constexpr std::int32_t get_tile_size(std::int32_t operand) {
    return static_cast<std::int32_t>(unpack_tile_size[operand]);
}

constexpr std::uint32_t get_tile_hw(std::int32_t operand) {
    return std::uint32_t{unpack_tile_r_dim[operand]} * unpack_tile_c_dim[operand];
}

constexpr std::uint32_t get_tile_num_faces(std::int32_t operand) {
    return unpack_tile_num_faces[operand];
}

constexpr DataFormat get_dataformat(std::int32_t operand) {
    return static_cast<DataFormat>(unpack_src_format[operand]);
}
