#pragma once

// Common parts of tile tests: tiles of given and random values, and their elements.

#include <algorithm>
#include <random>
#include <vector>

#include "compute_testing.hpp"
#include "device/compute/tile_format.hpp"

namespace tile_testing {

using compute_testing::draw;
using namespace ttcodegen::device::compute;

inline Tile tile_of(const std::vector<float>& values) {
    Tile tile;
    std::copy(values.begin(), values.end(), tile.floats());
    return tile;
}

inline Tile draw_tile(unsigned seed, float low = -2.0F, float high = 2.0F) {
    return tile_of(draw(kTileElements, low, high, seed));
}

inline Tile draw_integers(unsigned seed, int low, int high) {
    std::mt19937 generator(seed);
    std::uniform_int_distribution<std::int32_t> distribution(low, high);
    Tile tile;
    for (std::size_t i = 0; i < kTileElements; ++i) {
        tile.integers()[i] = distribution(generator);
    }
    return tile;
}

inline float at(const float* tile, std::size_t row, std::size_t column) {
    return tile[tile_offset(row, column)];
}

inline std::vector<float> vector_of(const float* tile) { return {tile, tile + kTileElements}; }

}  // namespace tile_testing
