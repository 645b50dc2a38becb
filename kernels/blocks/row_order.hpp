// Sorting of the elements of a row by integer keys.
#pragma once

#include <cstdint>

#include "api/dataflow/dataflow_api.h"

namespace blocks {

/// Interpretation of the bits of an element.
enum class Number { floating, signed_integer, unsigned_integer };

/// An integer key that sorts like the element: ascending keys are ascending elements. NaN sorts
/// last, or first if `nan_is_least`.
template <Number number, bool nan_is_least, typename Element>
constexpr uint32_t order_key(Element element) {
    constexpr uint32_t sign = 0x80000000;
    uint32_t bits = element;
    if (number == Number::unsigned_integer) {
        return bits;
    }
    bits <<= 32 - 8 * sizeof(Element);
    if (number == Number::signed_integer) {
        return bits ^ sign;
    }
    constexpr uint32_t infinity = 0x7f800000;
    const uint32_t magnitude = bits & ~sign;
    if (magnitude > infinity) {
        return nan_is_least ? ~(infinity | sign) : 0xffffffff;
    }
    if (magnitude == 0) {
        return sign;
    }
    return bits & sign ? ~bits : bits | sign;
}

/// Indices of the first `kept` elements of a row in sorted order. The sort is stable.
///
/// During the sort, the pages of a circular buffer hold them as a heap, the last one at its root.
template <uint32_t kept, Number number, bool descending, bool nan_is_least>
class RowOrder {
  public:
    explicit RowOrder(uint32_t memory) {
        constexpr uint32_t bytes = 2 * kept * sizeof(uint32_t);
        const uint32_t page_bytes = get_tile_size(memory);
        cb_reserve_back(memory, (bytes + page_bytes - 1) / page_bytes);
        keys_ = reinterpret_cast<volatile tt_l1_ptr uint32_t*>(get_write_ptr(memory));
        places_ = keys_ + kept;
    }

    /// Sorts `count` elements, starting at index `first`.
    template <typename Elements>
    void sort(Elements& elements, uint32_t first, uint32_t count) {
        size_ = 0;
        for (uint32_t place = 0; place < count; ++place) {
            const uint32_t key = order_key<number, nan_is_least>(elements.element(first + place));
            add(descending ? ~key : key, place);
        }
        for (uint32_t last = size_; last > 1;) {
            --last;
            const uint32_t key = keys_[last];
            const uint32_t place = places_[last];
            set(last, keys_[0], places_[0]);
            sink(key, place, last);
        }
    }

    /// The index in the row of the element at this position of the sorted order.
    uint32_t place(uint32_t position) const { return places_[position]; }

  private:
    void set(uint32_t position, uint32_t key, uint32_t place) {
        keys_[position] = key;
        places_[position] = place;
    }

    /// Compares two pairs: key first, then index in the row.
    bool is_before(uint32_t position, uint32_t key, uint32_t place) const {
        return keys_[position] < key || (keys_[position] == key && places_[position] < place);
    }

    void add(uint32_t key, uint32_t place) {
        if (size_ == kept) {
            // Indices ascend, so an equal key sorts after the kept ones.
            if (key < keys_[0]) {
                sink(key, place, size_);
            }
            return;
        }
        uint32_t position = size_++;
        while (position > 0 && is_before((position - 1) / 2, key, place)) {
            const uint32_t parent = (position - 1) / 2;
            set(position, keys_[parent], places_[parent]);
            position = parent;
        }
        set(position, key, place);
    }

    /// Replaces the root of a heap of that size and sifts the new pair down.
    void sink(uint32_t key, uint32_t place, uint32_t size) {
        uint32_t position = 0;
        for (uint32_t child = 1; child < size; child = 2 * position + 1) {
            if (child + 1 < size && is_before(child, keys_[child + 1], places_[child + 1])) {
                ++child;
            }
            if (is_before(child, key, place)) {
                break;
            }
            set(position, keys_[child], places_[child]);
            position = child;
        }
        set(position, key, place);
    }

    volatile tt_l1_ptr uint32_t* keys_;
    volatile tt_l1_ptr uint32_t* places_;
    uint32_t size_ = 0;
};

/// Sorted order of rows, of which the first `kept` elements are kept; the pages of `memory` hold 8
/// bytes for each of them.
template <uint32_t kept, Number number, bool descending, bool nan_is_least>
RowOrder<kept, number, descending, nan_is_least> order_rows(uint32_t memory) {
    return RowOrder<kept, number, descending, nan_is_least>(memory);
}

}  // namespace blocks
