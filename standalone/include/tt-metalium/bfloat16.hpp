#pragma once

#include <bit>
#include <compare>
#include <cstdint>
#include <type_traits>

/// The upper half of an IEEE single: 8 bits of exponent, 7 of mantissa.
class bfloat16 {
  private:
    std::uint16_t uint16_data;

  public:
    constexpr bfloat16() = default;

    /// Rounds to nearest, ties to even.
    template <class T>
        requires std::is_arithmetic_v<T>
    constexpr bfloat16(T value) noexcept : uint16_data(from_float(static_cast<float>(value))) {}

    /// Rounds towards zero.
    static bfloat16 truncate(float value);

    constexpr operator float() const {
        return std::bit_cast<float>(static_cast<std::uint32_t>(uint16_data) << 16);
    }

    constexpr bool operator==(bfloat16 other) const {
        return static_cast<float>(*this) == static_cast<float>(other);
    }
    constexpr std::partial_ordering operator<=>(bfloat16 other) const noexcept {
        return static_cast<float>(*this) <=> static_cast<float>(other);
    }

    bfloat16& operator+=(bfloat16 other) noexcept;
    bfloat16& operator-=(bfloat16 other) noexcept;
    bfloat16& operator*=(bfloat16 other) noexcept;
    bfloat16& operator/=(bfloat16 other) noexcept;

    bfloat16 operator+(bfloat16 other) const;
    bfloat16 operator-(bfloat16 other) const;
    bfloat16 operator*(bfloat16 other) const;
    bfloat16 operator/(bfloat16 other) const;

  private:
    std::uint16_t from_float(float value);
};
