#include "core/numeric.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/parallel.hpp"

namespace ttcodegen::cpu {

namespace {

constexpr std::size_t kGroup = 16;

std::uint32_t exponent_of(float value) {
    return (std::bit_cast<std::uint32_t>(value) >> 23) & 0xffU;
}

float block_value(bool negative, std::uint32_t mantissa, std::uint32_t shared_exponent,
                  std::uint32_t mantissa_bits) {
    const int scale = static_cast<int>(shared_exponent) - 127 - static_cast<int>(mantissa_bits - 1);
    const float magnitude = std::ldexp(static_cast<float>(mantissa), scale);
    return negative && mantissa != 0 ? -magnitude : magnitude;
}

std::uint32_t full_mantissa(std::uint32_t bits) { return (bits & 0x7fffffU) | 0x800000U; }

/// The mantissa of a value under a shared exponent as rounded by the host, with `mantissa_bits`
/// bits including the leading one.
std::uint32_t mantissa_of_host(float value, std::uint32_t shared_exponent,
                               std::uint32_t mantissa_bits) {
    const std::uint32_t exponent = exponent_of(value);
    if (exponent == 0) {
        return 0;  // zero, or a denormal, which the device flushes
    }
    const std::uint32_t shift = shared_exponent - exponent;
    std::uint32_t mantissa =
        shift > 24 ? 0 : full_mantissa(std::bit_cast<std::uint32_t>(value)) >> shift;
    const std::uint32_t dropped = 24 - mantissa_bits;
    const std::uint32_t half = 1U << (dropped - 1);
    const std::uint32_t rest = mantissa & ((1U << dropped) - 1);
    mantissa >>= dropped;
    if (rest > half || (rest == half && (mantissa & 1U) != 0)) {
        ++mantissa;
    }
    return std::min(mantissa, (1U << mantissa_bits) - 1);
}

/// The packer's early conversion of a value: seven bits with the leading one, ties away from zero.
float early_converted(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    const std::uint32_t kept = magnitude < 0x800000U ? 0 : (magnitude + 0x10000U) & ~0x1ffffU;
    return std::bit_cast<float>((bits & 0x80000000U) | kept);
}

/// The same for the packer: rounded to seven bits, ties away from zero, and truncated for narrower
/// formats.
std::uint32_t mantissa_of_packer(float value, std::uint32_t shared_exponent,
                                 std::uint32_t mantissa_bits) {
    const std::uint32_t exponent = exponent_of(value);
    const std::uint32_t shift = shared_exponent - exponent + 17;
    if (exponent == 0 || shift > 24) {
        return 0;
    }
    const std::uint32_t full = full_mantissa(std::bit_cast<std::uint32_t>(value));
    return std::min((full + (1U << (shift - 1))) >> shift, 127U) >> (7 - mantissa_bits);
}

void quantize_group(float* values, std::size_t count, std::uint32_t mantissa_bits,
                    BlockRounding rounding) {
    const bool packs = rounding == BlockRounding::Packer;
    if (packs) {
        std::transform(values, values + count, values, early_converted);
    }
    std::uint32_t shared = 0;
    for (std::size_t i = 0; i < count; ++i) {
        shared = std::max(shared, exponent_of(values[i]));
    }
    const auto mantissa_of = packs ? mantissa_of_packer : mantissa_of_host;
    for (std::size_t i = 0; i < count; ++i) {
        values[i] =
            block_value(std::signbit(values[i]), mantissa_of(values[i], shared, mantissa_bits),
                        shared, mantissa_bits);
    }
}

}  // namespace

void quantize_block_float(float* values, std::size_t rows, std::size_t width, DataType dtype,
                          BlockRounding rounding) {
    const std::uint32_t mantissa_bits = dtype == DataType::BFLOAT8_B ? 7 : 3;
    const std::size_t grain = std::max<std::size_t>(1, 8192 / std::max<std::size_t>(width, 1));
    parallel_for(rows, grain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            for (std::size_t column = 0; column < width; column += kGroup) {
                quantize_group(values + row * width + column, std::min(kGroup, width - column),
                               mantissa_bits, rounding);
            }
        }
    });
}

}  // namespace ttcodegen::cpu
