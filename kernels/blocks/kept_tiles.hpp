// Tiles that are handed over again and again: each is read from DRAM once, and copied within L1.
#pragma once

#include <cstdint>

#include "api/dataflow/dataflow_api.h"
#include "tile_slots.hpp"

namespace blocks {

/// The tiles of a tensor that were handed over last, up to `slots` of them.
template <uint32_t slots, typename Tensor>
class KeptTiles {
  public:
    /// The pages of the circular buffer `memory` keep tiles for the circular buffer `target`.
    KeptTiles(const Tensor& tensor, uint32_t memory, uint32_t target)
        : tiles_(tensor, memory), target_(target) {}

    /// Hands a page of the tensor over; `prepare` is done to it once, when it comes from DRAM.
    template <void (*prepare)(uint32_t address) = as_it_is>
    void push(uint32_t page) {
        const uint32_t kept = tiles_.template address<prepare>(page);
        cb_reserve_back(target_, 1);
        noc_async_read(get_noc_addr(kept), get_write_ptr(target_), tiles_.tile_bytes());
        noc_async_read_barrier();
        cb_push_back(target_, 1);
    }

  private:
    TileSlots<slots, Tensor> tiles_;
    uint32_t target_;
};

}  // namespace blocks
