// Debug output of elements in L1: rows of 32x32 tiles, and rows of tensors without tiles.
#pragma once

#include <cstdint>

#include "api/debug/dprint.h"

namespace blocks {

// Without debug output, DPRINT begins a dead statement: it is not an expression.
#if defined(DEBUG_PRINT_ENABLED) && !defined(FORCE_DPRINT_OFF) && !defined(USE_DEVICE_PRINT)
constexpr bool prints = true;
#else
constexpr bool prints = false;
#endif

/// The data types of elements that are printed.
enum class Printed { f32, bf16, si32, u32 };

/// The index of an element in a tile: four faces of 16x16 follow each other.
constexpr uint32_t printed_place(uint32_t row, uint32_t column) {
    return (row / 16 * 2 + column / 16) * 256 + row % 16 * 16 + column % 16;
}

/// Loads an element from L1 in a type that DPRINT prints.
template <Printed type>
auto printed_element(uint32_t address, uint32_t number) {
    if constexpr (type == Printed::bf16) {
        return BF16(reinterpret_cast<volatile uint16_t*>(address)[number]);
    } else {
        const uint32_t bits = reinterpret_cast<volatile uint32_t*>(address)[number];
        if constexpr (type == Printed::f32) {
            return F32(__builtin_bit_cast(float, bits));
        } else if constexpr (type == Printed::si32) {
            return static_cast<int32_t>(bits);
        } else {
            return bits;
        }
    }
}

/// Prints up to 32 elements of a row, from `column` on, and ends the line.
template <Printed type, bool is_tile, uint32_t column, typename Line>
void end_line(Line&& line, uint32_t address, uint32_t row, uint32_t count) {
    if constexpr (column < 32) {
        if (column < count) {
            const uint32_t number = is_tile ? printed_place(row, column) : row + column;
            end_line<type, is_tile, column + 1>(
                line << " " << printed_element<type>(address, number), address, row, count);
            return;
        }
    }
    line << ENDL();
}

/// Prints a number, and the elements of a row.
template <Printed type, bool is_tile>
void print_line(uint32_t address, uint32_t row, uint32_t count) {
    if constexpr (prints) {
        end_line<type, is_tile, 0>(DebugPrinter() << row << ":", address, row, count);
    }
}

/// Prints the tile at an address, a row to a line.
template <Printed type>
void print_tile(uint32_t address) {
    for (uint32_t row = 0; row < 32; ++row) {
#ifdef COMPILE_FOR_TRISC
        // All three processors that compute run the kernel; one of them prints.
        DPRINT_MATH((print_line<type, true>(address, row, 32)));
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
