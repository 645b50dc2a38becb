#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "tt_stl/span.hpp"

enum class TensorLayoutType {
    LIN_ROW_MAJOR = 0,   // rows of elements
    TILED_SWIZZLED = 1,  // rows of tiles, each with rows of elements
    TILED_NFACES = 2,    // rows of tiles, each with its faces one after another
};

using PhysicalSize = std::array<std::uint32_t, 2>;

/// Converts consecutive matrices of `shape` from one layout to another.
/// @throws std::runtime_error if tiles do not divide the shape.
template <typename T>
std::vector<T> convert_layout(tt::stl::Span<const T> inp, const PhysicalSize& shape,
                              TensorLayoutType inL, TensorLayoutType outL,
                              std::optional<PhysicalSize> tile_shape = std::nullopt,
                              std::optional<PhysicalSize> face_shape = std::nullopt,
                              bool transpose_within_face = false, bool transpose_of_faces = false);

/// Tilizes an `m` x `n` matrix as 32x32 tiles with row-major elements, and back.
template <typename T>
std::vector<T> tilize_swizzled(const std::vector<T>& input, std::uint32_t m, std::uint32_t n);
template <typename T>
std::vector<T> untilize_swizzled(const std::vector<T>& input, std::uint32_t m, std::uint32_t n);

/// Tilizes an `m` x `n` matrix as 32x32 tiles of four 16x16 faces, the layout of the device, and
/// back.
template <typename T>
std::vector<T> tilize_nfaces(const std::vector<T>& input, std::uint32_t m, std::uint32_t n);
template <typename T>
std::vector<T> untilize_nfaces(const std::vector<T>& input, std::uint32_t m, std::uint32_t n);
