#pragma once

// Elementwise conversions between stored elements and the values that kernels compute with.

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/numeric.hpp"

namespace ttcodegen::cpu {

/// Storage (`Stored`) of a data type's elements, and conversion from and to floats.
struct Bfloat16Element {
    using Stored = std::uint16_t;
    static float load(Stored stored) { return bf16_value(stored); }
    static Stored store(float value) { return bf16_bits(value); }
};
struct FloatElement {
    using Stored = float;
    static float load(Stored stored) { return stored; }
    static Stored store(float value) { return value; }
};
/// Integers: floats truncate towards zero and saturate; NaN becomes 0.
template <typename Integer>
struct IntegerElement {
    using Stored = Integer;
    static float load(Stored stored) { return static_cast<float>(stored); }
    static Stored store(float value) {
        constexpr auto kLowest = static_cast<double>(std::numeric_limits<Integer>::lowest());
        constexpr auto kHighest = static_cast<double>(std::numeric_limits<Integer>::max());
        const auto wide = static_cast<double>(value);
        const double low = wide < kLowest ? kLowest : wide;
        const double clamped = low > kHighest ? kHighest : low;
        return wide == wide ? static_cast<Integer>(clamped) : Integer{0};
    }
};

/// Calls `body(element)` with the element type of `dtype`; block floats count as floats.
template <typename Body>
decltype(auto) with_element(DataType dtype, const Body& body) {
    switch (dtype) {
        case DataType::BFLOAT16:
            return body(Bfloat16Element{});
        case DataType::UINT32:
            return body(IntegerElement<std::uint32_t>{});
        case DataType::UINT16:
            return body(IntegerElement<std::uint16_t>{});
        case DataType::UINT8:
            return body(IntegerElement<std::uint8_t>{});
        case DataType::INT32:
            return body(IntegerElement<std::int32_t>{});
        default:
            return body(FloatElement{});
    }
}

}  // namespace ttcodegen::cpu
