// Reads of single rows of tiles.
#pragma once

#include <cstdint>

#include "api/dataflow/dataflow_api.h"
#include "tile_elements.hpp"

namespace blocks {

/// Starts the read of a row of a page into the tile at an address: its part in both faces, or in
/// the left face alone.
///
/// The offset in the tile is kept: source and target of reads from DRAM must be aligned alike.
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
