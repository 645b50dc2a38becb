// Packing of rows into consecutive tiles, for elementwise functions.
#pragma once

#include <cstdint>

#include "api/dataflow/dataflow_api.h"

namespace blocks {

/// Zeroes the padding of a block: the first `row_bytes` of every `distance` bytes hold a row, and
/// compute kernels read whole tiles, `bytes` in all.
inline void clear_gaps(uint32_t address, uint32_t rows, uint32_t row_bytes, uint32_t distance,
                       uint32_t bytes) {
    auto elements = reinterpret_cast<volatile tt_l1_ptr uint16_t*>(address);
    for (uint32_t row = 0; row < rows; ++row) {
        const uint32_t end = row + 1 < rows ? (row + 1) * distance : bytes;
        for (uint32_t at = row * distance + row_bytes; at < end; at += sizeof(uint16_t)) {
            elements[at / sizeof(uint16_t)] = 0;
        }
    }
}

}  // namespace blocks
