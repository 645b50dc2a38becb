#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "tt-metalium/constants.hpp"
#include "tt-metalium/tt_backend_api_types.hpp"

namespace tt::tt_metal {

/// The shape of a tile; by default 32x32 with four 16x16 faces.
struct Tile {
    Tile(std::array<std::uint32_t, 2> tile_shape = {constants::TILE_HEIGHT, constants::TILE_WIDTH},
         bool transpose_tile = false);

    std::uint32_t get_height() const { return tile_shape[0]; }
    std::uint32_t get_width() const { return tile_shape[1]; }
    std::uint32_t get_num_faces() const { return num_faces; }
    std::uint32_t get_tile_hw() const { return tile_hw; }
    std::uint32_t get_face_hw() const { return face_hw; }
    std::array<std::uint32_t, 2> get_tile_shape() const { return tile_shape; }
    std::array<std::uint32_t, 2> get_face_shape() const { return face_shape; }
    bool get_transpose_within_face() const { return transpose_within_face; }
    bool get_transpose_of_faces() const { return transpose_of_faces; }

    /// The size of a tile of `format` in bytes.
    std::uint32_t get_tile_size(const DataFormat& format) const;

    bool operator==(const Tile& other) const;

  private:
    std::array<std::uint32_t, 2> tile_shape = {constants::TILE_HEIGHT, constants::TILE_WIDTH};
    std::array<std::uint32_t, 2> face_shape = {constants::FACE_HEIGHT, constants::FACE_WIDTH};
    std::uint32_t tile_hw = constants::TILE_HW;
    std::uint32_t face_hw = constants::FACE_HW;
    std::uint32_t num_faces = constants::TILE_HW / constants::FACE_HW;
    bool transpose_within_face = false;
    bool transpose_of_faces = false;
};

}  // namespace tt::tt_metal
