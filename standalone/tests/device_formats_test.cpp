// Data formats that the emulated compute processor packs and unpacks.

#include <bit>
#include <utility>

#include "device/compute/tile_format.hpp"
#include "device/compute/tile_math.hpp"
#include "tile_testing.hpp"

using namespace compute_testing;
using namespace tile_testing;
using tt::DataFormat;
using ttcodegen::cpu::BlockRounding;

namespace {

void test_offsets() {
    expect(tile_offset(0, 15) == 15 && tile_offset(0, 16) == 256, "faces lie side by side");
    expect(tile_offset(16, 0) == 512 && tile_offset(31, 31) == 1023, "then below each other");
}

/// A tile after packing and unpacking.
Tile through(DataFormat format, const Tile& tile) {
    std::vector<std::byte> memory(tile_bytes(format));
    pack_words(tile.words.data(), format, memory.data());
    Tile result;
    unpack_words(memory.data(), format, SourcePrecision::Float32, result.words.data());
    return result;
}

void test_formats() {
    expect(tile_bytes(DataFormat::Float32) == 4096 && tile_bytes(DataFormat::Float16_b) == 2048 &&
               tile_bytes(DataFormat::Bfp8_b) == 1088 && tile_bytes(DataFormat::Bfp4_b) == 576 &&
               tile_bytes(DataFormat::UInt8) == 1024,
           "bytes of tiles");
    const Tile tile = draw_tile(1);
    expect(through(DataFormat::Float32, tile).words == tile.words, "Float32 keeps all bits");
    const std::vector<float> values = vector_of(tile.floats());
    expect_close(vector_of(through(DataFormat::Float16_b, tile).floats()), values, 1.0 / 256);
    expect_close(vector_of(through(DataFormat::Float16, tile).floats()), values, 1.0 / 2048);
    expect_close(vector_of(through(DataFormat::Bfp8_b, tile).floats()), values, 1.0 / 128);
    expect_close(vector_of(through(DataFormat::Bfp4_b, tile).floats()), values, 1.0 / 8);
    expect_close(vector_of(through(DataFormat::Bfp2_b, tile).floats()), values, 0.5);
    for (const DataFormat format : {DataFormat::Int32, DataFormat::UInt32}) {
        const Tile integers = draw_integers(2, -100000, 100000);
        expect(through(format, integers).words == integers.words, "integers keep all bits");
    }
    const Tile small = draw_integers(3, 0, 255);
    for (const DataFormat format : {DataFormat::UInt16, DataFormat::UInt8}) {
        expect(through(format, small).words == small.words, "narrow integers are extended");
    }
    const Tile negative = draw_integers(4, -128, 127);
    expect(through(DataFormat::Int8, negative).words == negative.words, "signs are extended");
}

/// Compares shared exponents with the quantization of host tensors.
void test_block_float() {
    Tile tile = draw_tile(5, -4.0F, 4.0F);
    tile.floats()[17] = 1e-20F;
    tile.floats()[40] = 1e6F;
    for (const auto& [format, dtype] : {std::pair{DataFormat::Bfp8_b, DataType::BFLOAT8_B},
                                        {DataFormat::Bfp4_b, DataType::BFLOAT4_B}}) {
        std::vector<float> expected = vector_of(tile.floats());
        ttcodegen::cpu::quantize_block_float(expected.data(), kTileElements / 16, 16, dtype,
                                             BlockRounding::Host);
        expect(vector_of(through(format, tile).floats()) == expected,
               "blocks of 16 share exponents");
    }
}

/// The first values of a row of block floats that the packer writes.
std::vector<float> packed(DataFormat format, PackSource source, std::vector<float> row) {
    Tile tile{};
    std::copy(row.begin(), row.end(), tile.floats());
    std::vector<std::byte> memory(tile_bytes(format));
    pack_destination(tile.words.data(), format, source, memory.data());
    std::vector<float> read(kTileElements);
    unpack_floats(memory.data(), format, SourcePrecision::Float32, read.data());
    read.resize(row.size());
    return read;
}

void test_packer() {
    // Ties round away from zero, where the host rounds to even.
    const float tie = 1.0F + 1.0F / 128;
    expect(packed(DataFormat::Bfp8_b, PackSource::BlockFloat, {1.0F, tie, -tie}) ==
               std::vector<float>{1.0F, 1.0F + 1.0F / 64, -1.0F - 1.0F / 64},
           "ties are rounded away from zero");
    // 1.0078 is 1.015625 in seven bits, half of which is a tie under the exponent of 1: two
    // roundings round up where a single one does not.
    expect(packed(DataFormat::Bfp8_b, PackSource::BlockFloat, {1.0F, tie / 2})[1] == 33.0F / 64,
           "the packer rounds twice");
    expect(packed(DataFormat::Bfp8_b, PackSource::Precise, {1.0F, tie / 2})[1] == 0.5F,
           "a precise packer rounds once");
    // 0.9375 is 60 of 64 in eight bits, whose first three are 7 of 8 with the sign apart.
    expect(packed(DataFormat::Bfp4_b, PackSource::BlockFloat, {1.0F, 0.9375F, -0.24F}) ==
               std::vector<float>{1.0F, 0.75F, 0.0F},
           "narrow block floats are cut off");
}

/// Results of ttnn operations are rounded as those of device programs.
void test_library_packs_as_the_packer() {
    Tile tile = draw_tile(6, -4.0F, 4.0F);
    tile.floats()[17] = 1e-20F;
    tile.floats()[40] = 1e6F;
    tile.floats()[41] = 1.0F + 1.0F / 128;
    for (const auto& [format, dtype] : {std::pair{DataFormat::Bfp8_b, DataType::BFLOAT8_B},
                                        {DataFormat::Bfp4_b, DataType::BFLOAT4_B}}) {
        std::vector<float> expected = vector_of(tile.floats());
        const std::vector<float> found = packed(format, PackSource::BlockFloat, expected);
        ttcodegen::cpu::quantize_block_float(expected.data(), kTileElements / 16, 16, dtype,
                                             BlockRounding::Packer);
        expect(found == expected, "the library rounds as the packer");
        const std::vector<float> once = expected;
        ttcodegen::cpu::quantize_block_float(expected.data(), kTileElements / 16, 16, dtype,
                                             BlockRounding::Packer);
        expect(once == expected, "what is rounded stays");
    }
}

void test_precision() {
    const float value = std::bit_cast<float>(0x3f8fffffU);
    const std::vector<float> values(kTileElements, value);
    const auto* memory = reinterpret_cast<const std::byte*>(values.data());
    std::vector<float> read(kTileElements);
    unpack_floats(memory, DataFormat::Float32, SourcePrecision::Tf32, read.data());
    expect(std::bit_cast<std::uint32_t>(read[5]) == 0x3f8fe000U, "Tf32 keeps 10 mantissa bits");
    unpack_floats(memory, DataFormat::Float32, SourcePrecision::Bfloat16, read.data());
    expect(std::bit_cast<std::uint32_t>(read[5]) == 0x3f8f0000U, "bfloat16 keeps 7");
    round_to_bfloat16(read.data(), 1);
    expect(std::bit_cast<std::uint32_t>(read[0]) == 0x3f8f0000U, "which rounding leaves alone");
}

}  // namespace

int main() {
    test_offsets();
    test_formats();
    test_block_float();
    test_packer();
    test_library_packs_as_the_packer();
    test_precision();
}
