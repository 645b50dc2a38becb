#pragma once

// Functions of the vector engine as computed by the kernels of tt-metal 0.70.1, where these are
// less accurate than float. Source: ckernel_sfpu_exp.h and ckernel_sfpu_rsqrt_compat.h of tt-llk.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "compute/arithmetic.hpp"

namespace ttcodegen::cpu {

/// e^x in approximate mode: linear interpolation between powers of two, in steps of 2^-8. Arguments
/// are clamped at -88.5.
inline float fast_exponential(float x) {
    constexpr float steps = 256.0F * 1.4426950408889634F;
    constexpr float bias = 32500.818359375F;  // 127 * 2^8, less what halves the largest error
    if (x != x) {
        return x;
    }
    const float scaled = (x < -88.5F ? -88.5F : x) * steps + bias;
    const float clamped = scaled < 0.0F ? 0.0F : scaled > 65535.0F ? 65535.0F : scaled;
    return std::bit_cast<float>(static_cast<std::uint32_t>(clamped + 0.5F) << 15);
}

/// 1/x of positive numbers by Newton's method: one step (within 4 %) if it may be approximate, two
/// (within 0.15 %) otherwise.
inline float iterated_reciprocal(float x, const Arithmetic& arithmetic) {
    constexpr float guess = 1.442695F;
    constexpr std::uint32_t mantissa = 0x007fffff;
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const auto exponent = static_cast<std::int32_t>(bits >> 23 & 0xff);
    const float half = std::bit_cast<float>((bits & mantissa) | 126U << 23);  // 0.5 to 1
    float result = guess * (2.0F - half * guess);
    for (int step = 0; step < (arithmetic.approximate ? 1 : 2); ++step) {
        result *= 2.0F - half * result;
    }
    if (exponent == 0xff) {
        return (bits & mantissa) != 0 ? x : 0.0F;
    }
    const auto own = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(result) >> 23);
    const std::int32_t scaled = std::max(own + 126 - exponent, 0);
    const std::uint32_t found = (std::bit_cast<std::uint32_t>(result) & mantissa) |
                                static_cast<std::uint32_t>(scaled) << 23;
    const auto value = std::bit_cast<float>(found);
    return arithmetic.approximate ? value : arithmetic.in_destination(value);
}

}  // namespace ttcodegen::cpu
