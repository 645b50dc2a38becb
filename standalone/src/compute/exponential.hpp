#pragma once

#include <bit>
#include <cstdint>

namespace ttcodegen::cpu {

/// e^x within 2 units in the last place; no branch and no library call, so that loops vectorise.
inline float exponential(float x) {
    // Beyond these bounds the result is infinite or zero; the comparisons propagate NaN.
    const float low = x < -104.0F ? -104.0F : x;
    const float clamped = low > 89.0F ? 89.0F : low;
    // Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits.
    constexpr float shift = 12582912.0F;
    const float shifted = clamped * 1.44269504088896341F + shift;
    const float rounded = shifted - shift;
    const std::int32_t power =
        std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(shift);
    // ln 2 in two parts, the first with few enough bits for an exact product.
    const float rest = (clamped - rounded * 0.693359375F) + rounded * 2.12194440e-4F;
    float series = 1.9875691500e-4F;
    series = series * rest + 1.3981999507e-3F;
    series = series * rest + 8.3334519073e-3F;
    series = series * rest + 4.1665795894e-2F;
    series = series * rest + 1.6666665459e-1F;
    series = series * rest + 5.0000001201e-1F;
    const float value = series * (rest * rest) + rest + 1.0F;
    // 2^power in two factors: the power exceeds the exponents of normal numbers.
    const std::int32_t half = power >> 1;
    const auto factor = [](std::int32_t exponent) {
        return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
    };
    return value * factor(half) * factor(power - half);
}

inline float logistic(float x) { return 1.0F / (1.0F + exponential(-x)); }

}  // namespace ttcodegen::cpu
