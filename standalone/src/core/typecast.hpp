#pragma once

// Conversions of elements as the vector engine makes them: `ttnn::typecast` and `typecast_tile`
// (ckernel_sfpu_typecast.h of tt-metal 0.70.1 and 0.81.1; docs/numbers.md has the table).

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/conversion.hpp"

namespace ttcodegen::cpu {

/// Cuts off; what is beyond either end, and NaN, is the lowest number.
inline std::int32_t typecast_to_si32(float value) {
    const bool held = std::fabs(value) < 0x1p31F;
    return held ? static_cast<std::int32_t>(value) : std::numeric_limits<std::int32_t>::lowest();
}

/// Cuts off and saturates; NaN is the highest number, with a sign zero.
inline std::uint32_t typecast_to_u32(float value) {
    if (std::signbit(value)) {
        return 0;
    }
    return value < 0x1p32F ? static_cast<std::uint32_t>(value)
                           : std::numeric_limits<std::uint32_t>::max();
}

/// Rounds to nearest, ties away from zero, and saturates; NaN is the highest number, with a sign
/// zero.
inline std::uint16_t typecast_to_u16(float value) {
    if (std::signbit(value)) {
        return 0;
    }
    return value < 65535.0F ? static_cast<std::uint16_t>(std::round(value))
                            : std::numeric_limits<std::uint16_t>::max();
}

/// Cuts off and keeps the lowest bits, which are zeros from 2^31 on; NaN is zero.
inline std::uint8_t typecast_to_u8(float value) {
    const bool held = std::fabs(value) < 0x1p31F;
    return held ? static_cast<std::uint8_t>(static_cast<std::int32_t>(value)) : std::uint8_t{0};
}

/// Rounds the lower 31 bits, then the sum with the highest one.
inline float typecast_to_float(std::uint32_t value) {
    const auto low = static_cast<float>(static_cast<std::int32_t>(value & 0x7fffffffU));
    return (value >> 31) != 0 ? low + 0x1p31F : low;
}

/// Rounds to the digits of bfloat16 as what was an integer is: ties away from zero.
inline float round_ties_away_to_bf16(float value) {
    return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + 0x8000U) & 0xffff0000U);
}

/// The element that the vector engine converts to `Element`, from a float or an integer.
template <typename Element, typename Source>
typename Element::Stored typecast_element(typename Source::Stored stored) {
    using Stored = typename Element::Stored;
    constexpr bool kToFloat =
        std::is_same_v<Element, Bfloat16Element> || std::is_same_v<Element, FloatElement>;
    if constexpr (std::is_same_v<Source, Bfloat16Element> || std::is_same_v<Source, FloatElement>) {
        const float value = Source::load(stored);
        if constexpr (kToFloat) {
            return Element::store(value);
        } else if constexpr (std::is_same_v<Stored, std::int32_t>) {
            return typecast_to_si32(value);
        } else if constexpr (std::is_same_v<Stored, std::uint32_t>) {
            return typecast_to_u32(value);
        } else if constexpr (std::is_same_v<Stored, std::uint16_t>) {
            return typecast_to_u16(value);
        } else {
            return typecast_to_u8(value);
        }
    } else if constexpr (kToFloat) {
        float value = 0.0F;
        if constexpr (std::is_same_v<typename Source::Stored, std::int32_t>) {
            value = static_cast<float>(stored);
        } else {
            value = typecast_to_float(stored);
        }
        constexpr bool kNarrow = std::is_same_v<Element, Bfloat16Element>;
        return Element::store(kNarrow ? round_ties_away_to_bf16(value) : value);
    } else if constexpr (std::is_same_v<Stored, std::uint16_t>) {
        return static_cast<Stored>(std::clamp<std::int64_t>(stored, 0, 0xffff));
    } else {
        return static_cast<Stored>(stored);
    }
}

}  // namespace ttcodegen::cpu
