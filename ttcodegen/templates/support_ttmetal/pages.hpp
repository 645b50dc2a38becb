#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tt-metalium/experimental/tensor/spec/layout/layout.hpp>
#include <tt-metalium/experimental/tensor/tensor_types.hpp>
#include <vector>

#include "support/array.hpp"

namespace support {

/// The pages of a tensor's buffer.
///
/// TILE: a page is a tile of 32x32 elements, stored as four row-major faces of 16x16; the last two
/// dimensions are padded with zeros, and tiles are in row-major order, batch by batch. ROW_MAJOR: a
/// page is a row of the last dimension, padded to `row_alignment` bytes.
struct Pages {
    std::uint32_t count;
    /// In bytes.
    std::uint32_t size;
};

/// Alignment of rows in bytes: the requirement of DRAM and L1 transfers on Wormhole.
constexpr std::uint32_t row_alignment = 32;

/// The pages of a tensor; at least one, since buffers are not empty.
/// @throws std::runtime_error if they exceed 32 bits, or the data type has no row-major layout.
Pages pages_of(std::span<const std::uint64_t> shape, tt::tt_metal::DataType data_type,
               tt::tt_metal::Layout layout);

/// Converts elements to the data type and packs them as pages.
/// @throws std::runtime_error if the elements do not fit the data type.
std::vector<std::byte> to_pages(const ArrayView& array, tt::tt_metal::DataType data_type,
                                tt::tt_metal::Layout layout);

/// Unpacks pages to elements; block floats become float32.
Array from_pages(std::span<const std::byte> pages, std::span<const std::uint64_t> shape,
                 tt::tt_metal::DataType data_type, tt::tt_metal::Layout layout);

}  // namespace support
