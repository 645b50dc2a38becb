// Caches tiles that are pushed repeatedly: each is read from DRAM once, and copied within L1.
#pragma once

#include <cstdint>

#include "api/dataflow/dataflow_api.h"
#include "tile_elements.hpp"
#include "tile_slots.hpp"

namespace blocks {

/// The most recently pushed tiles of a tensor, up to `slots` of them.
template <uint32_t slots, typename Tensor>
class KeptTiles {
  public:
    /// The pages of the circular buffer `memory` keep tiles for the circular buffer `target`.
    KeptTiles(const Tensor& tensor, uint32_t memory, uint32_t target)
        : tiles_(tensor, memory), target_(target) {}

    /// Pushes a page of the tensor as it is.
    void push(uint32_t page) { push_copy(tiles_.address(page)); }

    /// Pushes a page of the tensor with its first row broadcast.
    template <typename Element>
    void push_first_row(uint32_t page) {
        push_copy(tiles_.template address_of_first_row<Element, repeat_first_row<Element>>(page));
    }

    /// Pushes a page of the tensor with its first column broadcast.
    template <typename Element>
    void push_first_column(uint32_t page) {
        push_copy(tiles_.template address<repeat_first_column<Element>>(page));
    }

    /// Pushes a page of the tensor with its first element broadcast.
    template <typename Element>
    void push_first_element(uint32_t page) {
        push_copy(
            tiles_.template address_of_first_row<Element, repeat_first_element<Element>>(page));
    }

  private:
    void push_copy(uint32_t kept) {
        cb_reserve_back(target_, 1);
        noc_async_read(get_noc_addr(kept), get_write_ptr(target_), tiles_.tile_bytes());
        noc_async_read_barrier();
        cb_push_back(target_, 1);
    }

    TileSlots<slots, Tensor> tiles_;
    uint32_t target_;
};

/// The last `slots` tiles of `tensor`, in the pages of `memory`, for the circular buffer `target`.
template <uint32_t slots, typename Tensor>
KeptTiles<slots, Tensor> keep_tiles(const Tensor& tensor, uint32_t memory, uint32_t target) {
    return {tensor, memory, target};
}

}  // namespace blocks
