#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

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

std::uint32_t pack_two_bfloat16_into_uint32(std::pair<bfloat16, bfloat16> two_bfloats);
std::vector<bfloat16> create_random_vector_of_bfloat16_native(std::size_t num_bytes,
                                                              float rand_max_float, int seed,
                                                              float offset = 0.0f);
std::vector<std::uint32_t> create_random_vector_of_bfloat16(std::size_t num_bytes,
                                                            int rand_max_float, int seed,
                                                            float offset = 0.0f);
std::vector<std::uint32_t> create_constant_vector_of_bfloat16(std::size_t num_bytes, float value);
std::vector<std::uint32_t> pack_bfloat16_vec_into_uint32_vec(const std::vector<bfloat16>& data);
bfloat16 bfloat16_identity_transform(const bfloat16& input);
std::vector<bfloat16> unpack_uint32_vec_into_bfloat16_vec(
    const std::vector<std::uint32_t>& data,
    const std::function<bfloat16(const bfloat16&)>& transform = bfloat16_identity_transform);
