// Debug output of elements in L1, for releases whose DPRINT takes a format.
#pragma once

#include <cstdint>

#include "api/debug/dprint.h"
#include "printed_rows.hpp"

namespace blocks {

template <Printed type, bool is_tile>
void print_line(uint32_t address, uint32_t row, uint32_t count) {
    DPRINT("{}:", row);
    for (uint32_t column = 0; column < 32 && column < count; ++column) {
        const auto element =
            printed_element<type, bf16_t, float>(address, printed_index<is_tile>(row, column));
        DPRINT(" {}", element);
    }
    DPRINT("\n");
}

}  // namespace blocks
