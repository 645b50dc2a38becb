// Single elements of a 32x32 tile in L1.
#pragma once

#include <cstdint>

#include "api/dataflow/dataflow_api.h"
#include "tile_layout.hpp"

namespace blocks {

/// The elements of the tile at an address.
template <typename Element>
volatile tt_l1_ptr Element* elements_at(uint32_t address) {
    return reinterpret_cast<volatile tt_l1_ptr Element*>(address);
}

/// Sets an element of a tile.
template <typename Element>
void set_element(volatile tt_l1_ptr Element* elements, uint32_t row, uint32_t column,
                 uint32_t value) {
    elements[element_offset(row, column)] = static_cast<Element>(value);
}

/// Overwrites the elements at and below `first_row`, and at and right of `first_column`.
template <typename Element>
void fill_padding(uint32_t address, uint32_t first_row, uint32_t first_column, Element value) {
    auto elements = elements_at<Element>(address);
    for (uint32_t row = 0; row < tile_side; ++row) {
        for (uint32_t column = row < first_row ? first_column : 0; column < tile_side; ++column) {
            elements[element_offset(row, column)] = value;
        }
    }
}

/// Sets the elements on the diagonal and left of it to a value, those right of it to 0.
template <typename Element>
void fill_triangle(uint32_t address, Element value) {
    auto elements = elements_at<Element>(address);
    for (uint32_t row = 0; row < tile_side; ++row) {
        for (uint32_t column = 0; column < tile_side; ++column) {
            elements[element_offset(row, column)] = column <= row ? value : Element(0);
        }
    }
}

/// Broadcasts the first row of a tile.
template <typename Element>
void repeat_first_row(uint32_t address) {
    auto elements = elements_at<Element>(address);
    for (uint32_t column = 0; column < tile_side; ++column) {
        const Element value = elements[element_offset(0, column)];
        for (uint32_t row = 1; row < tile_side; ++row) {
            elements[element_offset(row, column)] = value;
        }
    }
}

/// Broadcasts the first column of a tile.
template <typename Element>
void repeat_first_column(uint32_t address) {
    auto elements = elements_at<Element>(address);
    for (uint32_t row = 0; row < tile_side; ++row) {
        const Element value = elements[element_offset(row, 0)];
        for (uint32_t column = 1; column < tile_side; ++column) {
            elements[element_offset(row, column)] = value;
        }
    }
}

/// Broadcasts the first element of a tile.
template <typename Element>
void repeat_first_element(uint32_t address) {
    auto elements = elements_at<Element>(address);
    const Element value = elements[0];
    for (uint32_t index = 1; index < tile_side * tile_side; ++index) {
        elements[index] = value;
    }
}

}  // namespace blocks
