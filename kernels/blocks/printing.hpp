// Debug output of elements in L1, for releases whose DPRINT is a stream.
#pragma once

#include <cstdint>

#include "api/debug/dprint.h"
#include "printed_rows.hpp"

namespace blocks {

// Without debug output, DPRINT begins a dead statement: it is not an expression.
#if defined(DEBUG_PRINT_ENABLED) && !defined(FORCE_DPRINT_OFF) && !defined(USE_DEVICE_PRINT)
constexpr bool prints = true;
#else
constexpr bool prints = false;
#endif

/// Prints up to 32 elements of a row, from `column` on, and ends the line.
template <Printed type, bool is_tile, uint32_t column, typename Line>
void end_line(Line&& line, uint32_t address, uint32_t row, uint32_t count) {
    if constexpr (column < 32) {
        if (column < count) {
            const uint32_t index = printed_index<is_tile>(row, column);
            end_line<type, is_tile, column + 1>(
                line << " " << printed_element<type, BF16, F32>(address, index), address, row,
                count);
            return;
        }
    }
    line << ENDL();
}

template <Printed type, bool is_tile>
void print_line(uint32_t address, uint32_t row, uint32_t count) {
    if constexpr (prints) {
        end_line<type, is_tile, 0>(DebugPrinter() << row << ":", address, row, count);
    }
}

}  // namespace blocks
