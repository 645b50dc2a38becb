// A cache in L1 of the tiles of a tensor that were accessed last.
#pragma once

#include <cstdint>

#include "api/dataflow/dataflow_api.h"
#include "tile_elements.hpp"
#include "tile_rows.hpp"

namespace blocks {

/// The identity, for pages that need no preparation.
inline void as_it_is(uint32_t /*address*/) {}

/// A cache of up to `slots` tiles, or rows of tiles, of a tensor; the pages of a circular buffer
/// are its memory.
template <uint32_t slots, typename Tensor>
class TileSlots {
  public:
    TileSlots(const Tensor& tensor, uint32_t memory)
        : tensor_(tensor), tile_bytes_(get_tile_size(memory)) {
        cb_reserve_back(memory, slots);
        memory_ = get_write_ptr(memory);
        for (uint32_t slot = 0; slot < slots; ++slot) {
            numbers_[slot] = none;
        }
    }

    /// The L1 address of a page; `prepare` is applied once, after the page is read.
    template <void (*prepare)(uint32_t address) = as_it_is>
    uint32_t address(uint32_t page) {
        return found(page, [&](uint32_t target) {
            noc_async_read_page(page, tensor_, target);
            noc_async_read_barrier();
            prepare(target);
        });
    }

    /// The L1 address of a page of which only the first row is read.
    template <typename Element, void (*prepare)(uint32_t address)>
    uint32_t address_of_first_row(uint32_t page) {
        return found(page, [&](uint32_t target) {
            read_first_row<Element>(page, tensor_, target);
            noc_async_read_barrier();
            prepare(target);
        });
    }

    /// The L1 address of a page of which only one row, or its left face's part of it, is read.
    template <typename Element, bool both_faces>
    uint32_t address_of_row(uint32_t page, uint32_t row) {
        return found(page * tile_side + row, [&](uint32_t target) {
            read_row<Element, both_faces>(page, tensor_, target, row);
            noc_async_read_barrier();
        });
    }

    /// Bytes of a tile.
    uint32_t tile_bytes() const { return tile_bytes_; }

  private:
    /// The address of the page with that index; `bring` reads it to an address.
    template <typename Bring>
    uint32_t found(uint32_t number, Bring bring) {
        // Neighbours in a column share a slot only where there are more of them than slots.
        const uint32_t slot = (number + number / slots) % slots;
        const uint32_t target = memory_ + slot * tile_bytes_;
        if (numbers_[slot] != number) {
            bring(target);
            numbers_[slot] = number;
        }
        return target;
    }

    static constexpr uint32_t none = 0xffffffff;

    const Tensor& tensor_;
    uint32_t tile_bytes_;
    uint32_t memory_ = 0;
    /// The content of each slot: the index of a page, or of a row among the rows of all pages.
    uint32_t numbers_[slots];
};

}  // namespace blocks
