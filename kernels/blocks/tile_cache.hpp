// Random access to elements of a tiled tensor: a cache of the tiles used last, or of rows of
// tiles.
#pragma once

#include <cstdint>

#include "api/dataflow/dataflow_api.h"
#include "tile_elements.hpp"
#include "tile_slots.hpp"

namespace blocks {

/// The elements of a tensor of `height` x `width` matrices, indexed in row-major order.
///
/// The pages of the circular buffer, of one tile each, are the memory of the cache. Tiles are read
/// whole or, where a kernel needs few elements of each, row by row.
template <typename Element, uint32_t height, uint32_t width, uint32_t slots, bool by_row,
          typename Tensor>
class TileCache {
  public:
    TileCache(const Tensor& tensor, uint32_t circular_buffer) : tiles_(tensor, circular_buffer) {}

    /// The element at a row-major index.
    Element element(uint32_t number) {
        const uint32_t row = number / width;
        const uint32_t column = number % width;
        return tile(
            row, column / tile_side)[element_offset(row % height % tile_side, column % tile_side)];
    }

    /// Copies an element into a tile.
    void copy_element(uint32_t number, volatile tt_l1_ptr Element* target, uint32_t row,
                      uint32_t column) {
        target[element_offset(row, column)] = element(number);
    }

    /// Copies elements `stride` apart into a row of a tile, from `column` on.
    void copy_row(uint32_t number, uint32_t stride, uint32_t count,
                  volatile tt_l1_ptr Element* target, uint32_t row, uint32_t column) {
        if (stride != 1) {
            for (uint32_t index = 0; index < count; ++index) {
                target[element_offset(row, column + index)] = element(number + index * stride);
            }
            return;
        }
        uint32_t source_row = number / width;
        uint32_t source_column = number % width;
        while (count > 0) {
            const auto source = tile(source_row, source_column / tile_side);
            const uint32_t in_tile = tile_side - source_column % tile_side;
            const uint32_t in_row = width - source_column;
            uint32_t run = in_tile < in_row ? in_tile : in_row;
            run = run < count ? run : count;
            const uint32_t tile_row = source_row % height % tile_side;
            for (uint32_t index = 0; index < run; ++index) {
                target[element_offset(row, column + index)] =
                    source[element_offset(tile_row, source_column % tile_side + index)];
            }
            count -= run;
            column += run;
            source_column += run;
            if (source_column == width) {
                source_column = 0;
                ++source_row;
            }
        }
    }

  private:
    static constexpr uint32_t tile_columns = (width + tile_side - 1) / tile_side;
    static constexpr uint32_t tile_rows = (height + tile_side - 1) / tile_side;

    /// The tile that holds a row of the tensor, `tile_column` tiles from the left; its other rows
    /// may not have been read.
    volatile tt_l1_ptr Element* tile(uint32_t row, uint32_t tile_column) {
        const uint32_t page =
            (row / height * tile_rows + row % height / tile_side) * tile_columns + tile_column;
        if constexpr (by_row) {
            return elements_at<Element>(
                tiles_.template address_of_row<Element, (width > face_side)>(
                    page, row % height % tile_side));
        } else {
            return elements_at<Element>(tiles_.address(page));
        }
    }

    TileSlots<slots, Tensor> tiles_;
};

/// Caches whole tiles of `tensor` in the pages of a circular buffer.
template <typename Element, uint32_t height, uint32_t width, uint32_t slots, typename Tensor>
TileCache<Element, height, width, slots, false, Tensor> cache_tiles(const Tensor& tensor,
                                                                    uint32_t circular_buffer) {
    return {tensor, circular_buffer};
}

/// Caches one row of a tile in each page.
template <typename Element, uint32_t height, uint32_t width, uint32_t slots, typename Tensor>
TileCache<Element, height, width, slots, true, Tensor> cache_rows(const Tensor& tensor,
                                                                  uint32_t circular_buffer) {
    return {tensor, circular_buffer};
}

}  // namespace blocks
