#pragma once

// Conversion between tiles in L1, in any data format, and tiles in the registers of the compute
// processor: the work of the unpackers and the packer.

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/compute/tile.hpp"
#include "tt-metalium/tt_backend_api_types.hpp"

namespace ttcodegen::device::compute {

using tt::DataFormat;

/// Precision of a Float32 operand in the source registers; narrower formats fit unchanged.
enum class SourcePrecision : std::uint8_t {
    /// All 32 bits: the operand is unpacked to the destination register directly.
    Float32,
    /// 10 mantissa bits; the rest is truncated.
    Tf32,
    /// 7 mantissa bits; the rest is truncated.
    Bfloat16,
};

bool is_integer(DataFormat format);
bool is_block_float(DataFormat format);
/// Formats of 4 bytes per element, which need the 32-bit mode of the destination register.
bool is_wide(DataFormat format);
/// Returns whether tiles of this format can be unpacked and packed here.
bool is_supported(DataFormat format);
/// The size of a 32 x 32 tile in bytes; 0 for formats that have no tiles here.
std::size_t tile_bytes(DataFormat format);
/// The format's name in tt-metal, such as "Float16_b".
const char* format_name(DataFormat format);

/// Reads a tile of a float format from L1.
void unpack_floats(const std::byte* source, DataFormat format, SourcePrecision precision,
                   float* values);

/// Reads a tile of any supported format into words: floats, or integers extended to 32 bits.
void unpack_words(const std::byte* source, DataFormat format, SourcePrecision precision,
                  std::uint32_t* words);

/// Writes a tile as the host does: floats rounded to nearest even, integers truncated to the width
/// of the format.
///
/// Words are floats for a float format and integers for an integer format.
void pack_words(const std::uint32_t* words, DataFormat format, std::byte* target);

/// The packer's input for block floats: seven mantissa bits, rounded to nearest with ties away from
/// zero, or, with `bfp8_pack_precise`, a truncated bfloat16.
///
/// Source: get_single_pack_src_format in jit_build/data_format.cpp of tt-metal 0.70.1, and
/// Packers/FormatConversion.md ("Early format conversion") of tenstorrent/tt-isa-documentation.
enum class PackSource : std::uint8_t { BlockFloat, Precise };

/// Writes a tile of DST to L1 as the packer does: block floats are rounded twice, to the packer's
/// input and to the shared exponent, ties away from zero.
void pack_destination(const std::uint32_t* words, DataFormat format, PackSource source,
                      std::byte* target);

/// Rounds floats in place to bfloat16, to nearest even.
void round_to_bfloat16(float* values, std::size_t count);

/// Reads `count` contiguous elements, for formats without shared exponents.
void unpack_row(const std::byte* source, DataFormat format, SourcePrecision precision,
                std::size_t count, std::uint32_t* words);
/// Writes `count` contiguous elements, for formats without shared exponents.
void pack_row(const std::uint32_t* words, DataFormat format, std::size_t count, std::byte* target);
/// Bytes of one element of a format without shared exponents.
std::size_t element_bytes(DataFormat format);

}  // namespace ttcodegen::device::compute
