// Scatter of elements into a row of tiles, at the columns that indices name.
#pragma once

#include <cstdint>

#include "row_order.hpp"
#include "tile_elements.hpp"

namespace blocks {

/// Reduction of several elements that are scattered to one column; `none` keeps the last one.
enum class Reduction { none, sum, prod, min, max };

template <Reduction reduction, typename Value>
constexpr Value reduced(Value target, Value source) {
    switch (reduction) {
        case Reduction::sum:
            return target + source;
        case Reduction::prod:
            return target * source;
        case Reduction::min:
            // NaN propagates.
            return source < target || source != source ? source : target;
        case Reduction::max:
            return source > target || source != source ? source : target;
        default:
            return source;
    }
}

/// The float32 with the bits of a bfloat16, or of a float32.
template <typename Element>
float float_of(Element bits) {
    return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << (32 - 8 * sizeof(Element)));
}

/// The bits of a number as float32, or rounded to the nearest bfloat16.
template <typename Element>
Element bits_of(float number) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, number);
    if constexpr (sizeof(Element) == sizeof(uint32_t)) {
        return bits;
    } else if (number != number) {
        return 0x7fc0;
    } else {
        // Ties round to even.
        return static_cast<Element>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
}

/// The bits of the reduction of two elements.
template <Number number, Reduction reduction, typename Element>
Element reduced_bits(Element target, Element source) {
    if constexpr (reduction == Reduction::none) {
        return source;
    } else if constexpr (number == Number::floating) {
        return bits_of<Element>(reduced<reduction>(float_of(target), float_of(source)));
    } else if constexpr (number == Number::signed_integer &&
                         (reduction == Reduction::min || reduction == Reduction::max)) {
        return static_cast<uint32_t>(
            reduced<reduction>(static_cast<int32_t>(target), static_cast<int32_t>(source)));
    } else {
        // Sums and products wrap around, signed or unsigned.
        return static_cast<Element>(reduced<reduction, uint32_t>(target, source));
    }
}

/// Scatters `count` elements, starting at `first`, into a row of `width` columns: those whose index
/// is among the `columns` from `first_column` on, whose tiles are at `target`. Indices outside of
/// the row are skipped.
template <uint32_t width, uint32_t columns, Number number, Reduction reduction, typename Indices,
          typename Elements, typename Element>
void scatter_row(Indices& indices, Elements& elements, uint32_t first, uint32_t count,
                 volatile tt_l1_ptr Element* target, uint32_t row, uint32_t first_column) {
    for (uint32_t position = first; position < first + count; ++position) {
        const uint32_t index = indices.element(position);
        const uint32_t column = index - first_column;
        if (index >= width || column >= columns) {
            continue;
        }
        const uint32_t tile = column / tile_side * tile_side * tile_side;
        auto& place = target[tile + element_offset(row, column % tile_side)];
        place = reduced_bits<number, reduction, Element>(place, elements.element(position));
    }
}

}  // namespace blocks
