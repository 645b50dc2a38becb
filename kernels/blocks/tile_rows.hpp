// Rows of tiles, which come without the rest of their tiles.
#pragma once

#include <cstdint>

#include "api/dataflow/dataflow_api.h"
#include "tile_elements.hpp"

namespace blocks {

/// Begins to read a row of a page of a tensor into the tile at an address: what each of two faces
/// has of it, or the left one alone.
///
/// It is read to its own offset in the tile, because transfers from DRAM have to be aligned alike.
template <typename Element, bool both_faces = true, typename Tensor>
void read_row(uint32_t page, const Tensor& tensor, uint32_t address, uint32_t row) {
    for (uint32_t column = 0; column < (both_faces ? tile_side : face_side); column += face_side) {
        const uint32_t offset = element_offset(row, column) * sizeof(Element);
        noc_async_read(tensor.get_noc_addr(page, offset), address + offset,
                       face_side * sizeof(Element));
    }
}

/// Begins to read the first row of a page.
template <typename Element, typename Tensor>
void read_first_row(uint32_t page, const Tensor& tensor, uint32_t address) {
    read_row<Element>(page, tensor, address, 0);
}

}  // namespace blocks
