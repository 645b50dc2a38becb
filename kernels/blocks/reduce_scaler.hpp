// The tiles that the matrix engine multiplies by where it reduces others.
#pragma once

#include <cstdint>

#include "api/dataflow/dataflow_api.h"

namespace blocks {

/// Pushes two bf16 tiles. The first one is a scaler: its faces have ones in their first row. The
/// second one has ones in the first column: products with it are sums of rows.
inline void push_reduce_scaler(uint32_t cb_scaler) {
    constexpr uint16_t one = 0x3f80;  // as bf16
    constexpr uint32_t faces = 4;
    constexpr uint32_t face_side = 16;
    cb_reserve_back(cb_scaler, 2);
    auto elements = reinterpret_cast<volatile tt_l1_ptr uint16_t*>(get_write_ptr(cb_scaler));
    for (uint32_t face = 0; face < faces; ++face) {
        for (uint32_t index = 0; index < face_side * face_side; ++index) {
            const bool is_left = face % 2 == 0;
            const uint32_t place = face * face_side * face_side + index;
            elements[place] = index < face_side ? one : 0;
            elements[faces * face_side * face_side + place] =
                is_left && index % face_side == 0 ? one : 0;
        }
    }
    cb_push_back(cb_scaler, 2);
}

}  // namespace blocks
