#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "ttnn/tensor/types.hpp"

namespace ttcodegen::cpu {

using tt::tt_metal::DataType;

/// bfloat16 bits of `value`, ties to even; NaN stays NaN. Branch-free, so that loops vectorise.
inline std::uint16_t bf16_bits(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    const std::uint32_t quiet = (bits >> 16) | 0x40U;
    return static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded);
}

inline float bf16_value(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// `value` rounded to bfloat16.
inline float round_to_bf16(float value) { return bf16_value(bf16_bits(value)); }

/// Rounding of floats to block floats.
///
/// Host: truncated by the shift to the shared exponent, then rounded to nearest, ties to even
/// (`convert_u32_to_bfp` in blockfloat_common.cpp of tt-metal 0.70.1). Packer: as cores of the
/// device write results, rounded twice, ties away from zero (Packers/FormatConversion.md of
/// tenstorrent/tt-isa-documentation).
enum class BlockRounding : std::uint8_t { Host, Packer };

/// Quantises rows of `width` floats in place: every 16 neighbours along a row share an exponent.
///
/// The mantissa has 7 (BFLOAT8_B) or 3 (BFLOAT4_B) bits besides the sign. The last group of a row
/// may be short: padding holds zeros.
void quantize_block_float(float* values, std::size_t rows, std::size_t width, DataType dtype,
                          BlockRounding rounding);

}  // namespace ttcodegen::cpu
