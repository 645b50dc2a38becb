#include "device/compute/tile_format.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/numeric.hpp"

namespace ttcodegen::device::compute {

namespace {

struct FormatRow {
    DataFormat format;
    const char* name;
    /// Bytes of an element; 0 where elements share exponents.
    std::size_t element;
    /// Mantissa bits, leading one included, of a format with shared exponents.
    std::uint32_t mantissa;
    bool integer;
};

constexpr std::array kFormats{
    FormatRow{DataFormat::Float32, "Float32", 4, 0, false},
    FormatRow{DataFormat::Tf32, "Tf32", 4, 0, false},
    FormatRow{DataFormat::Float16, "Float16", 2, 0, false},
    FormatRow{DataFormat::Float16_b, "Float16_b", 2, 0, false},
    FormatRow{DataFormat::Bfp8_b, "Bfp8_b", 0, 7, false},
    FormatRow{DataFormat::Bfp4_b, "Bfp4_b", 0, 3, false},
    FormatRow{DataFormat::Bfp2_b, "Bfp2_b", 0, 1, false},
    FormatRow{DataFormat::Int32, "Int32", 4, 0, true},
    FormatRow{DataFormat::UInt32, "UInt32", 4, 0, true},
    FormatRow{DataFormat::UInt16, "UInt16", 2, 0, true},
    FormatRow{DataFormat::Int8, "Int8", 1, 0, true},
    FormatRow{DataFormat::UInt8, "UInt8", 1, 0, true},
};

constexpr FormatRow kUnsupported{DataFormat::Invalid, "Invalid", 0, 0, false};

const FormatRow& row_of(DataFormat format) {
    const auto* row = std::find_if(kFormats.begin(), kFormats.end(),
                                   [&](const FormatRow& each) { return each.format == format; });
    return row == kFormats.end() ? kUnsupported : *row;
}

/// Elements that share an exponent: a row of a face.
constexpr std::size_t kGroup = 16;
constexpr std::size_t kGroups = kTileElements / kGroup;

float half_value(std::uint16_t bits) {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
    const std::uint32_t exponent = (bits >> 10) & 0x1fU;
    const std::uint32_t mantissa = bits & 0x3ffU;
    // The device has neither denormals nor infinities of half precision: 31 is an exponent.
    const std::uint32_t magnitude = exponent == 0 ? 0 : ((exponent + 112) << 23) | (mantissa << 13);
    return std::bit_cast<float>(sign | magnitude);
}

std::uint16_t half_bits(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000U;
    const std::uint32_t rounded = (bits & 0x7fffffffU) + 0xfffU + ((bits >> 13) & 1U);
    if (rounded < (113U << 23)) {
        return static_cast<std::uint16_t>(sign);
    }
    const std::uint32_t magnitude = std::min((rounded >> 13) - (112U << 10), 0x7fffU);
    return static_cast<std::uint16_t>(sign | magnitude);
}

/// Truncates `value` to a source register of this precision.
template <SourcePrecision precision>
std::uint32_t kept_bits(std::uint32_t bits) {
    if constexpr (precision == SourcePrecision::Tf32) {
        return bits & 0xffffe000U;
    } else if constexpr (precision == SourcePrecision::Bfloat16) {
        return bits & 0xffff0000U;
    } else {
        return bits;
    }
}

template <SourcePrecision precision>
void unpack_float32(const std::byte* source, std::size_t count, std::uint32_t* words) {
    std::memcpy(words, source, count * sizeof(float));
    if constexpr (precision != SourcePrecision::Float32) {
        for (std::size_t i = 0; i < count; ++i) {
            words[i] = kept_bits<precision>(words[i]);
        }
    }
}

/// Unpacks block floats; mantissas narrower than a byte fill each byte from its low bits.
void unpack_block_float(const std::byte* source, std::uint32_t mantissa_bits, float* values) {
    const auto* exponents = reinterpret_cast<const std::uint8_t*>(source);
    const std::uint8_t* mantissas = exponents + kGroups;
    const std::uint32_t width = mantissa_bits + 1;
    const std::uint32_t in_a_byte = 8 / width;
    const std::uint32_t mask = (1U << mantissa_bits) - 1;
    for (std::size_t group = 0; group < kGroups; ++group) {
        // 2^(exponent - 127 - (mantissa_bits - 1)) in two factors, as it may be a denormal.
        const std::uint32_t exponent = exponents[group];
        const float scale = exponent == 0 ? 0.0F : std::bit_cast<float>(exponent << 23);
        const float unit = std::bit_cast<float>((127U - (mantissa_bits - 1)) << 23);
        for (std::size_t i = 0; i < kGroup; ++i) {
            const std::size_t index = group * kGroup + i;
            const std::uint32_t shift = static_cast<std::uint32_t>(index % in_a_byte) * width;
            const std::uint32_t stored = mantissas[index / in_a_byte] >> shift;
            const float magnitude = static_cast<float>(stored & mask) * unit * scale;
            values[index] = ((stored >> mantissa_bits) & 1U) != 0 ? -magnitude : magnitude;
        }
    }
}

/// Sign and mantissa of a float under a shared exponent.
using BlockRounding = std::uint32_t (*)(std::uint32_t bits, std::uint32_t shared,
                                        std::uint32_t mantissa_bits);

std::uint32_t with_sign(std::uint32_t bits, std::uint32_t mantissa, std::uint32_t mantissa_bits) {
    const std::uint32_t kept = std::min(mantissa, (1U << mantissa_bits) - 1);
    return kept == 0 ? 0 : ((bits >> 31) << mantissa_bits) | kept;
}

/// The host's rounding (tt-metal 0.70.1, `convert_u32_to_bfp` in blockfloat_common.cpp): truncated
/// by the shift to the shared exponent, then rounded to nearest, ties to even.
std::uint32_t rounded_by_host(std::uint32_t bits, std::uint32_t shared,
                              std::uint32_t mantissa_bits) {
    const std::uint32_t exponent = (bits >> 23) & 0xffU;
    const std::uint32_t shift = shared - exponent;
    if (exponent == 0 || shift > 24) {
        return 0;  // zero, a denormal, which the device flushes, or far below the others
    }
    const std::uint32_t aligned = ((bits & 0x7fffffU) | 0x800000U) >> shift;
    const std::uint32_t dropped = 24 - mantissa_bits;
    const std::uint32_t odd = (aligned >> dropped) & 1U;
    const std::uint32_t half = 1U << (dropped - 1);
    return with_sign(bits, (aligned + half - 1 + odd) >> dropped, mantissa_bits);
}

/// The packer's rounding: to 7 bits under the shared exponent, ties away from zero, truncated for
/// narrower formats. Source: Packers/FormatConversion.md ("Late format conversion") of
/// tenstorrent/tt-isa-documentation.
std::uint32_t rounded_by_packer(std::uint32_t bits, std::uint32_t shared,
                                std::uint32_t mantissa_bits) {
    const std::uint32_t exponent = (bits >> 23) & 0xffU;
    const std::uint32_t shift = shared - exponent + 17;
    if (exponent == 0 || shift > 24) {
        return 0;
    }
    const std::uint32_t full = (bits & 0x7fffffU) | 0x800000U;
    const std::uint32_t byte = std::min((full + (1U << (shift - 1))) >> shift, 127U);
    return with_sign(bits, byte >> (7 - mantissa_bits), mantissa_bits);
}

void pack_block_float(const std::uint32_t* words, std::uint32_t mantissa_bits,
                      BlockRounding rounded, std::byte* target) {
    auto* exponents = reinterpret_cast<std::uint8_t*>(target);
    std::uint8_t* mantissas = exponents + kGroups;
    const std::uint32_t width = mantissa_bits + 1;
    const std::uint32_t in_a_byte = 8 / width;
    for (std::size_t group = 0; group < kGroups; ++group) {
        const std::uint32_t* row = words + group * kGroup;
        std::uint32_t shared = 0;
        for (std::size_t i = 0; i < kGroup; ++i) {
            shared = std::max(shared, (row[i] >> 23) & 0xffU);
        }
        exponents[group] = static_cast<std::uint8_t>(shared);
        std::uint8_t* bytes = mantissas + group * kGroup / in_a_byte;
        for (std::size_t byte = 0; byte < kGroup / in_a_byte; ++byte) {
            std::uint32_t packed = 0;
            for (std::uint32_t i = 0; i < in_a_byte; ++i) {
                packed |= rounded(row[byte * in_a_byte + i], shared, mantissa_bits) << (i * width);
            }
            bytes[byte] = static_cast<std::uint8_t>(packed);
        }
    }
}

template <typename Stored, typename Convert>
void load_elements(const std::byte* source, std::size_t count, std::uint32_t* words,
                   const Convert& convert) {
    for (std::size_t i = 0; i < count; ++i) {
        Stored stored;
        std::memcpy(&stored, source + i * sizeof(Stored), sizeof(Stored));
        words[i] = convert(stored);
    }
}

template <typename Stored, typename Convert>
void store_elements(const std::uint32_t* words, std::size_t count, std::byte* target,
                    const Convert& convert) {
    for (std::size_t i = 0; i < count; ++i) {
        const Stored stored = convert(words[i]);
        std::memcpy(target + i * sizeof(Stored), &stored, sizeof(Stored));
    }
}

}  // namespace

bool is_integer(DataFormat format) { return row_of(format).integer; }
bool is_block_float(DataFormat format) { return row_of(format).mantissa != 0; }
bool is_wide(DataFormat format) { return row_of(format).element == 4; }
bool is_supported(DataFormat format) { return tile_bytes(format) != 0; }
const char* format_name(DataFormat format) { return row_of(format).name; }
std::size_t element_bytes(DataFormat format) { return row_of(format).element; }

std::size_t tile_bytes(DataFormat format) {
    const FormatRow& row = row_of(format);
    return row.mantissa == 0 ? row.element * kTileElements
                             : kGroups + kTileElements * (row.mantissa + 1) / 8;
}

void unpack_row(const std::byte* source, DataFormat format, SourcePrecision precision,
                std::size_t count, std::uint32_t* words) {
    switch (format) {
        case DataFormat::Float32:
        case DataFormat::Tf32:
            if (precision == SourcePrecision::Float32) {
                unpack_float32<SourcePrecision::Float32>(source, count, words);
            } else if (precision == SourcePrecision::Tf32) {
                unpack_float32<SourcePrecision::Tf32>(source, count, words);
            } else {
                unpack_float32<SourcePrecision::Bfloat16>(source, count, words);
            }
            return;
        case DataFormat::Float16_b:
            load_elements<std::uint16_t>(source, count, words, [](std::uint16_t stored) {
                return static_cast<std::uint32_t>(stored) << 16;
            });
            return;
        case DataFormat::Float16:
            load_elements<std::uint16_t>(source, count, words, [](std::uint16_t stored) {
                return std::bit_cast<std::uint32_t>(half_value(stored));
            });
            return;
        case DataFormat::UInt16:
            load_elements<std::uint16_t>(
                source, count, words, [](std::uint16_t stored) { return std::uint32_t{stored}; });
            return;
        case DataFormat::UInt8:
            load_elements<std::uint8_t>(source, count, words,
                                        [](std::uint8_t stored) { return std::uint32_t{stored}; });
            return;
        case DataFormat::Int8:
            load_elements<std::int8_t>(source, count, words, [](std::int8_t stored) {
                return static_cast<std::uint32_t>(std::int32_t{stored});
            });
            return;
        default:
            std::memcpy(words, source, count * sizeof(std::uint32_t));
    }
}

void unpack_words(const std::byte* source, DataFormat format, SourcePrecision precision,
                  std::uint32_t* words) {
    const FormatRow& row = row_of(format);
    if (row.mantissa != 0) {
        unpack_block_float(source, row.mantissa, reinterpret_cast<float*>(words));
    } else {
        unpack_row(source, format, precision, kTileElements, words);
    }
}

void unpack_floats(const std::byte* source, DataFormat format, SourcePrecision precision,
                   float* values) {
    unpack_words(source, format, precision, reinterpret_cast<std::uint32_t*>(values));
}

void pack_row(const std::uint32_t* words, DataFormat format, std::size_t count, std::byte* target) {
    switch (format) {
        case DataFormat::Float16_b:
            store_elements<std::uint16_t>(words, count, target, [](std::uint32_t word) {
                return cpu::bf16_bits(std::bit_cast<float>(word));
            });
            return;
        case DataFormat::Float16:
            store_elements<std::uint16_t>(words, count, target, [](std::uint32_t word) {
                return half_bits(std::bit_cast<float>(word));
            });
            return;
        case DataFormat::Tf32:
            store_elements<std::uint32_t>(words, count, target, [](std::uint32_t word) {
                return kept_bits<SourcePrecision::Tf32>(word);
            });
            return;
        case DataFormat::UInt16:
            store_elements<std::uint16_t>(words, count, target, [](std::uint32_t word) {
                return static_cast<std::uint16_t>(word);
            });
            return;
        case DataFormat::UInt8:
        case DataFormat::Int8:
            store_elements<std::uint8_t>(words, count, target, [](std::uint32_t word) {
                return static_cast<std::uint8_t>(word);
            });
            return;
        default:
            std::memcpy(target, words, count * sizeof(std::uint32_t));
    }
}

void pack_words(const std::uint32_t* words, DataFormat format, std::byte* target) {
    const FormatRow& row = row_of(format);
    if (row.mantissa != 0) {
        pack_block_float(words, row.mantissa, rounded_by_host, target);
    } else {
        pack_row(words, format, kTileElements, target);
    }
}

void pack_destination(const std::uint32_t* words, DataFormat format, PackSource source,
                      std::byte* target) {
    const FormatRow& row = row_of(format);
    if (row.mantissa == 0) {
        pack_row(words, format, kTileElements, target);
        return;
    }
    std::array<std::uint32_t, kTileElements> taken{};
    std::transform(words, words + kTileElements, taken.begin(), [source](std::uint32_t word) {
        if (source == PackSource::Precise) {
            return word & 0xffff0000U;
        }
        // Seven bits with the leading one; denormals are flushed to zero.
        const std::uint32_t magnitude = word & 0x7fffffffU;
        const std::uint32_t kept = magnitude < (1U << 23) ? 0 : (magnitude + 0x10000U) & ~0x1ffffU;
        return (word & 0x80000000U) | kept;
    });
    pack_block_float(taken.data(), row.mantissa, rounded_by_packer, target);
}

void round_to_bfloat16(float* values, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = cpu::round_to_bf16(values[i]);
    }
}

}  // namespace ttcodegen::device::compute
