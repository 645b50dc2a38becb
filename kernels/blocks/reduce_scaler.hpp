// The scaler tile of reductions: the matrix engine reads the first row of each face.
#pragma once

#include <cstdint>

#include "api/dataflow/dataflow_api.h"

namespace blocks {

/// Pushes a bf16 scaler tile, whose faces have ones in their first row and zeros below.
inline void push_reduce_scaler(uint32_t cb_scaler) {
    constexpr uint16_t one = 0x3f80;  // as bf16
    constexpr uint32_t faces = 4;
    constexpr uint32_t face_side = 16;
    cb_reserve_back(cb_scaler, 1);
    auto elements = reinterpret_cast<volatile tt_l1_ptr uint16_t*>(get_write_ptr(cb_scaler));
    for (uint32_t face = 0; face < faces; ++face) {
        for (uint32_t index = 0; index < face_side * face_side; ++index) {
            elements[face * face_side * face_side + index] = index < face_side ? one : 0;
        }
    }
    cb_push_back(cb_scaler, 1);
}

}  // namespace blocks
