#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tt-metalium/experimental/tensor/spec/layout/layout.hpp>
#include <tt-metalium/experimental/tensor/tensor_types.hpp>
#include <vector>

#include "support/array.hpp"

namespace support {

/// How a tensor is divided into the pages of a buffer.
///
/// TILE: a page is a tile of 32x32 elements, stored as four faces of 16x16, each of them row by
/// row; the last two dimensions are padded with zeros, tiles follow each other row by row, batch by
/// batch. ROW_MAJOR: a page is a row of the last dimension, padded to `row_alignment` bytes.
struct Pages {
    std::uint32_t count;
    /// Bytes.
    std::uint32_t size;
};

/// Bytes that rows are padded to: what transfers between DRAM and L1 need on Wormhole.
constexpr std::uint32_t row_alignment = 32;

/// The pages of a tensor; at least one, since no buffer is empty.
/// @throws std::runtime_error if they do not fit 32 bits, or rows of that data type do not exist.
Pages pages_of(std::span<const std::uint64_t> shape, tt::tt_metal::DataType data_type,
               tt::tt_metal::Layout layout);

/// The elements, converted to the data type, as the bytes of the pages.
/// @throws std::runtime_error if the elements do not fit the data type.
std::vector<std::byte> to_pages(const ArrayView& array, tt::tt_metal::DataType data_type,
                                tt::tt_metal::Layout layout);

/// The elements of a tensor with those pages; of block floats as float32.
Array from_pages(std::span<const std::byte> pages, std::span<const std::uint64_t> shape,
                 tt::tt_metal::DataType data_type, tt::tt_metal::Layout layout);

}  // namespace support
