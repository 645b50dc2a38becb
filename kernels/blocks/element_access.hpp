// Elements of a block in L1 as numbers: float32, or bfloat16, whose bits are the upper half of one.
#pragma once

#include <cstdint>
#include <cstring>

#include "api/dataflow/dataflow_api.h"
#include "tile_elements.hpp"

namespace blocks {

/// The offset of an element in a block of tiles, in elements; `tile` is the number of its tile.
constexpr uint32_t block_offset(uint32_t tile, uint32_t row, uint32_t column) {
    return tile * tile_side * tile_side + element_offset(row % tile_side, column % tile_side);
}

/// The element at an offset.
template <typename Element>
float element_value(uint32_t address, uint32_t offset) {
    uint32_t bits = elements_at<Element>(address)[offset];
    if constexpr (sizeof(Element) == sizeof(uint16_t)) {
        bits <<= 16;
    }
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
}

/// The element at an offset as an index, its fraction cut off.
template <typename Element>
uint32_t element_index(uint32_t address, uint32_t offset) {
    return static_cast<uint32_t>(element_value<Element>(address, offset));
}

/// Sets the element at an offset; bfloat16 cuts the lower bits off.
template <typename Element>
void set_element_value(uint32_t address, uint32_t offset, float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    if constexpr (sizeof(Element) == sizeof(uint16_t)) {
        bits >>= 16;
    }
    elements_at<Element>(address)[offset] = static_cast<Element>(bits);
}

/// 1 if the first of two numbers is greater, else 0.
inline uint32_t is_greater(float left, float right) { return left > right ? 1 : 0; }

}  // namespace blocks
