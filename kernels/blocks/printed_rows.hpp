// Debug output of elements in L1, rows of 32x32 tiles and rows of tensors without tiles, by the
// print_line of the header for the release's DPRINT.
#pragma once

#include <cstdint>

#include "tile_layout.hpp"

namespace blocks {

/// The data types of elements that are printed.
enum class Printed { f32, bf16, si32, u32 };

/// Loads an element from L1 in a type that DPRINT prints.
template <Printed type, typename BFloat16, typename Float32>
auto printed_element(uint32_t address, uint32_t index) {
    if constexpr (type == Printed::bf16) {
        return BFloat16(reinterpret_cast<volatile uint16_t*>(address)[index]);
    } else {
        const uint32_t bits = reinterpret_cast<volatile uint32_t*>(address)[index];
        if constexpr (type == Printed::f32) {
            return Float32(__builtin_bit_cast(float, bits));
        } else if constexpr (type == Printed::si32) {
            return static_cast<int32_t>(bits);
        } else {
            return bits;
        }
    }
}

/// The index of an element that is printed in a row: of a tile, or of consecutive elements whose
/// first is number `row`.
template <bool is_tile>
constexpr uint32_t printed_index(uint32_t row, uint32_t column) {
    return is_tile ? element_offset(row, column) : row + column;
}

/// Prints a number, and up to 32 elements of a row.
template <Printed type, bool is_tile>
void print_line(uint32_t address, uint32_t row, uint32_t count);

/// Prints the tile at an address, a row to a line.
template <Printed type>
void print_tile(uint32_t address) {
    for (uint32_t row = 0; row < tile_side; ++row) {
#ifdef COMPILE_FOR_TRISC
        // All three processors that compute run the kernel; one of them prints.
        MATH((print_line<type, true>(address, row, tile_side)));
#else
        print_line<type, true>(address, row, tile_side);
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
