// The layout of a 32x32 tile: four faces of 16x16, upper left, upper right, lower left, lower
// right, each row by row.
#pragma once

#include <cstdint>

namespace blocks {

constexpr uint32_t tile_side = 32;
constexpr uint32_t face_side = 16;

/// The offset of an element in a tile, in elements.
constexpr uint32_t element_offset(uint32_t row, uint32_t column) {
    const uint32_t face = row / face_side * 2 + column / face_side;
    return (face * face_side + row % face_side) * face_side + column % face_side;
}

}  // namespace blocks
