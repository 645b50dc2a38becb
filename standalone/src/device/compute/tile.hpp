#pragma once

// A tile in the compute processor: 1024 words of 32 bits in the order of the device, four row-major
// faces of 16 x 16.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace ttcodegen::device::compute {

constexpr std::size_t kTileElements = 1024;
constexpr std::size_t kTileWidth = 32;
constexpr std::size_t kFaceElements = 256;
constexpr std::size_t kFaceWidth = 16;
constexpr std::size_t kFaces = 4;

/// The interpretation of the words of a tile.
enum class Domain : std::uint8_t {
    /// IEEE single precision, already rounded to the register's precision.
    Float,
    /// Two's complement or unsigned integers, by data format.
    Integer,
};

/// The values of a tile as floats.
struct alignas(64) FloatTile {
    std::array<float, kTileElements> values;

    float* data() { return values.data(); }
    const float* data() const { return values.data(); }
};

/// The words of a tile of the destination register.
struct alignas(64) Tile {
    std::array<std::uint32_t, kTileElements> words;

    float* floats() { return reinterpret_cast<float*>(words.data()); }
    const float* floats() const { return reinterpret_cast<const float*>(words.data()); }
    std::int32_t* integers() { return reinterpret_cast<std::int32_t*>(words.data()); }
    const std::int32_t* integers() const {
        return reinterpret_cast<const std::int32_t*>(words.data());
    }
};

/// The offset of the element of `row` and `column` (0 to 31) in a tile.
constexpr std::size_t tile_offset(std::size_t row, std::size_t column) {
    const std::size_t face = (row / kFaceWidth) * 2 + column / kFaceWidth;
    return face * kFaceElements + (row % kFaceWidth) * kFaceWidth + column % kFaceWidth;
}

}  // namespace ttcodegen::device::compute
