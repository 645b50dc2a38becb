// Tiles that are handed over again and again: each is read from DRAM once, and copied within L1.
#pragma once

#include <cstdint>

#include "api/dataflow/dataflow_api.h"

namespace blocks {

/// Leaves a tile as it is.
inline void as_it_is(uint32_t /*address*/) {}

/// The tiles of a tensor that were handed over last, up to `slots` of them.
template <uint32_t slots, typename Tensor>
class KeptTiles {
  public:
    /// The pages of the circular buffer `memory` keep tiles for the circular buffer `target`.
    KeptTiles(const Tensor& tensor, uint32_t memory, uint32_t target)
        : tensor_(tensor), target_(target), tile_bytes_(get_tile_size(target)) {
        cb_reserve_back(memory, slots);
        memory_ = get_write_ptr(memory);
        for (uint32_t slot = 0; slot < slots; ++slot) {
            pages_[slot] = no_page;
        }
    }

    /// Hands a page of the tensor over; `prepare` is done to it once, when it comes from DRAM.
    template <void (*prepare)(uint32_t address) = as_it_is>
    void push(uint32_t page) {
        const uint32_t slot = page % slots;
        const uint32_t kept = memory_ + slot * tile_bytes_;
        if (pages_[slot] != page) {
            noc_async_read_page(page, tensor_, kept);
            noc_async_read_barrier();
            prepare(kept);
            pages_[slot] = page;
        }
        cb_reserve_back(target_, 1);
        noc_async_read(get_noc_addr(kept), get_write_ptr(target_), tile_bytes_);
        noc_async_read_barrier();
        cb_push_back(target_, 1);
    }

  private:
    static constexpr uint32_t no_page = 0xffffffff;

    const Tensor& tensor_;
    uint32_t target_;
    uint32_t tile_bytes_;
    uint32_t memory_ = 0;
    uint32_t pages_[slots];
};

}  // namespace blocks
