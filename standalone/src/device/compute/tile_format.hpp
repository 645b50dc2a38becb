#pragma once

// Conversion between tiles in L1, in any data format, and tiles in the registers of the compute
// processor: what the unpackers and the packer do.

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/compute/tile.hpp"
#include "tt-metalium/tt_backend_api_types.hpp"

namespace ttcodegen::device::compute {

using tt::DataFormat;

/// How precisely the source registers hold a Float32 operand; narrower formats fit as they are.
enum class SourcePrecision : std::uint8_t {
    /// All 32 bits: the operand goes to the destination register past the source registers.
    Float32,
    /// 10 mantissa bits; the rest is cut off.
    Tf32,
    /// 7 mantissa bits; the rest is cut off.
    Bfloat16,
};

bool is_integer(DataFormat format);
bool is_block_float(DataFormat format);
/// Formats of 4 bytes an element, which the destination register holds in its 32-bit mode only.
bool is_wide(DataFormat format);
/// Whether tiles of this format can be unpacked and packed here.
bool is_supported(DataFormat format);
/// Bytes of a tile of 32 x 32 elements; 0 for formats that have no tiles here.
std::size_t tile_bytes(DataFormat format);
/// The format's name in tt-metal, such as "Float16_b".
const char* format_name(DataFormat format);

/// Reads a tile of a float format from L1.
void unpack_floats(const std::byte* source, DataFormat format, SourcePrecision precision,
                   float* values);

/// Reads a tile of any supported format into words: floats, or integers extended to 32 bits.
void unpack_words(const std::byte* source, DataFormat format, SourcePrecision precision,
                  std::uint32_t* words);

/// Writes a tile as the host does: floats rounded to nearest even, integers cut to the width of the
/// format.
///
/// Words are floats for a float format and integers for an integer format.
void pack_words(const std::uint32_t* words, DataFormat format, std::byte* target);

/// What the packer takes of a float that becomes a block float: seven bits, rounded to nearest with
/// ties away from zero, or with `bfp8_pack_precise` a bfloat16, cut off.
///
/// Source: get_single_pack_src_format in jit_build/data_format.cpp of tt-metal 0.70.1, and
/// Packers/FormatConversion.md ("Early format conversion") of tenstorrent/tt-isa-documentation.
enum class PackSource : std::uint8_t { BlockFloat, Precise };

/// Writes a tile of DST to L1 as the packer does: block floats are rounded twice, once to what it
/// takes and once to the shared exponent, ties away from zero.
void pack_destination(const std::uint32_t* words, DataFormat format, PackSource source,
                      std::byte* target);

/// Rounds floats in place to bfloat16, to nearest even.
void round_to_bfloat16(float* values, std::size_t count);

/// Reads `count` elements that are contiguous, for formats without shared exponents.
void unpack_row(const std::byte* source, DataFormat format, SourcePrecision precision,
                std::size_t count, std::uint32_t* words);
/// Writes `count` elements in a row, for formats without shared exponents.
void pack_row(const std::uint32_t* words, DataFormat format, std::size_t count, std::byte* target);
/// Bytes of one element of a format without shared exponents.
std::size_t element_bytes(DataFormat format);

}  // namespace ttcodegen::device::compute
