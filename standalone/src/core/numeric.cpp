#include "core/numeric.hpp"

#include <algorithm>

#include "core/parallel.hpp"

namespace ttcodegen::cpu {

namespace {

constexpr std::size_t kGroup = 16;

std::uint32_t exponent_of(float value) {
    return (std::bit_cast<std::uint32_t>(value) >> 23) & 0xffU;
}

/// `value` with a mantissa of `mantissa_bits` (leading one included) under a shared exponent.
float quantize_one(float value, std::uint32_t shared_exponent, std::uint32_t mantissa_bits) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t exponent = exponent_of(value);
    if (exponent == 0) {
        return 0.0F;  // zero, or a denormal, which the device flushes
    }
    const std::uint32_t shift = shared_exponent - exponent;
    std::uint32_t mantissa = shift > 24 ? 0 : ((bits & 0x7fffffU) | 0x800000U) >> shift;
    const std::uint32_t dropped = 24 - mantissa_bits;
    const std::uint32_t half = 1U << (dropped - 1);
    const std::uint32_t rest = mantissa & ((1U << dropped) - 1);
    mantissa >>= dropped;
    if (rest > half || (rest == half && (mantissa & 1U) != 0)) {
        ++mantissa;
    }
    mantissa = std::min(mantissa, (1U << mantissa_bits) - 1);
    const int scale = static_cast<int>(shared_exponent) - 127 - static_cast<int>(mantissa_bits - 1);
    const float magnitude = std::ldexp(static_cast<float>(mantissa), scale);
    return (bits >> 31) != 0 && mantissa != 0 ? -magnitude : magnitude;
}

void quantize_group(float* values, std::size_t count, std::uint32_t mantissa_bits) {
    std::uint32_t shared = 0;
    for (std::size_t i = 0; i < count; ++i) {
        shared = std::max(shared, exponent_of(values[i]));
    }
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = quantize_one(values[i], shared, mantissa_bits);
    }
}

}  // namespace

void quantize_block_float(float* values, std::size_t rows, std::size_t width, DataType dtype) {
    const std::uint32_t mantissa_bits = dtype == DataType::BFLOAT8_B ? 7 : 3;
    const std::size_t grain = std::max<std::size_t>(1, 8192 / std::max<std::size_t>(width, 1));
    parallel_for(rows, grain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            for (std::size_t column = 0; column < width; column += kGroup) {
                quantize_group(values + row * width + column, std::min(kGroup, width - column),
                               mantissa_bits);
            }
        }
    });
}

}  // namespace ttcodegen::cpu
