// The tiles of a tensor that were looked at last, in L1.
#pragma once

#include <cstdint>

#include "api/dataflow/dataflow_api.h"

namespace blocks {

/// Leaves a tile as it is.
inline void as_it_is(uint32_t /*address*/) {}

/// Up to `slots` tiles of a tensor; the pages of a circular buffer are their memory.
template <uint32_t slots, typename Tensor>
class TileSlots {
  public:
    TileSlots(const Tensor& tensor, uint32_t memory)
        : tensor_(tensor), tile_bytes_(get_tile_size(memory)) {
        cb_reserve_back(memory, slots);
        memory_ = get_write_ptr(memory);
        for (uint32_t slot = 0; slot < slots; ++slot) {
            pages_[slot] = no_page;
        }
    }

    /// Where a page lies in L1; `prepare` is done to it once, when it comes from DRAM.
    template <void (*prepare)(uint32_t address) = as_it_is>
    uint32_t address(uint32_t page) {
        // Neighbours in a column share no slot unless there are more of them than slots.
        const uint32_t slot = (page + page / slots) % slots;
        const uint32_t found = memory_ + slot * tile_bytes_;
        if (pages_[slot] != page) {
            noc_async_read_page(page, tensor_, found);
            noc_async_read_barrier();
            prepare(found);
            pages_[slot] = page;
        }
        return found;
    }

    /// Bytes of a tile.
    uint32_t tile_bytes() const { return tile_bytes_; }

  private:
    static constexpr uint32_t no_page = 0xffffffff;

    const Tensor& tensor_;
    uint32_t tile_bytes_;
    uint32_t memory_ = 0;
    uint32_t pages_[slots];
};

}  // namespace blocks
