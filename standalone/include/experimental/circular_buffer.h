#pragma once

#ifdef COMPILE_FOR_TRISC
#include "api/compute/cb_api.h"
#else
#include "api/dataflow/dataflow_api.h"
#endif

namespace experimental {

/// A circular buffer of the core as an object, for kernels of all kinds.
class CircularBuffer {
  public:
    enum class AddrSelector { WRITE_PTR, READ_PTR };

    explicit CircularBuffer(std::uint32_t cb_id) : cb_id_(cb_id) {}

    std::uint32_t get_cb_id() const { return cb_id_; }

    void reserve_back(std::int32_t num_pages,
                      ttcodegen::device::Location here = ttcodegen::device::Location::current()) {
        cb_reserve_back(cb_id_, num_pages, here);
    }
    void push_back(std::int32_t num_pages,
                   ttcodegen::device::Location here = ttcodegen::device::Location::current()) {
        cb_push_back(cb_id_, num_pages, here);
    }
    void wait_front(std::int32_t num_pages,
                    ttcodegen::device::Location here = ttcodegen::device::Location::current()) {
        cb_wait_front(cb_id_, num_pages, here);
    }
    void pop_front(std::int32_t num_pages,
                   ttcodegen::device::Location here = ttcodegen::device::Location::current()) {
        cb_pop_front(cb_id_, num_pages, here);
    }

#ifdef COMPILE_FOR_TRISC
    std::uint32_t get_tile_address(
        std::uint32_t tile_index,
        ttcodegen::device::Location here = ttcodegen::device::Location::current()) {
        return ckernel::get_tile_address(cb_id_, tile_index, here);
    }
    std::uint32_t read_tile_value(
        std::uint32_t tile_index, std::uint32_t element_offset,
        ttcodegen::device::Location here = ttcodegen::device::Location::current()) {
        return ckernel::read_tile_value(cb_id_, tile_index, element_offset, here);
    }
#else
    std::uint32_t get_write_ptr(
        ttcodegen::device::Location here = ttcodegen::device::Location::current()) const {
        return ::get_write_ptr(cb_id_, here);
    }
    std::uint32_t get_read_ptr(
        ttcodegen::device::Location here = ttcodegen::device::Location::current()) const {
        return ::get_read_ptr(cb_id_, here);
    }
#endif

  private:
    std::uint32_t cb_id_;
};

}  // namespace experimental
