// Debug output of elements in L1, for releases whose DPRINT takes a format: rows of 32x32 tiles,
// and rows of tensors without tiles.
#pragma once

#include <cstdint>

#include "api/debug/dprint.h"

namespace blocks {

/// The data types of elements that are printed.
enum class Printed { f32, bf16, si32, u32 };

/// The index of an element in a tile: four faces of 16x16 follow each other.
constexpr uint32_t printed_place(uint32_t row, uint32_t column) {
    return (row / 16 * 2 + column / 16) * 256 + row % 16 * 16 + column % 16;
}

/// Prints an element.
template <Printed type>
void print_element(uint32_t address, uint32_t number) {
    if constexpr (type == Printed::bf16) {
        DPRINT(" {}", bf16_t(reinterpret_cast<volatile uint16_t*>(address)[number]));
    } else {
        const uint32_t bits = reinterpret_cast<volatile uint32_t*>(address)[number];
        if constexpr (type == Printed::f32) {
            DPRINT(" {}", __builtin_bit_cast(float, bits));
        } else if constexpr (type == Printed::si32) {
            DPRINT(" {}", static_cast<int32_t>(bits));
        } else {
            DPRINT(" {}", bits);
        }
    }
}

/// Prints a number, and up to 32 elements of a row.
template <Printed type, bool is_tile>
void print_line(uint32_t address, uint32_t row, uint32_t count) {
    DPRINT("{}:", row);
    for (uint32_t column = 0; column < 32 && column < count; ++column) {
        print_element<type>(address, is_tile ? printed_place(row, column) : row + column);
    }
    DPRINT("\n");
}

/// Prints the tile at an address, a row to a line.
template <Printed type>
void print_tile(uint32_t address) {
    for (uint32_t row = 0; row < 32; ++row) {
#ifdef COMPILE_FOR_TRISC
        // All three processors that compute run the kernel; one of them prints.
        MATH((print_line<type, true>(address, row, 32)));
#else
        print_line<type, true>(address, row, 32);
#endif
    }
}

/// Prints consecutive elements, 32 to a line.
template <Printed type>
void print_row(uint32_t address, uint32_t count) {
    for (uint32_t first = 0; first < count; first += 32) {
        print_line<type, false>(address, first, count - first);
    }
}

}  // namespace blocks
