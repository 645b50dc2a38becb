/// Moves pages between the host and the banks of a buffer.
#pragma once

#include <cstddef>

#include "device/emulated_device.hpp"
#include "tt-metalium/buffer.hpp"

namespace ttcodegen::device {

/// @throws std::runtime_error if the device of a buffer is not a mesh device of this backend.
EmulatedDevice& emulated_device(tt::tt_metal::IDevice* device);

/// Bytes `offset` to `offset + size` of what a chip has of the buffer; both multiples of the page
/// size.
void write_pages(const tt::tt_metal::Buffer& buffer, std::size_t chip, const std::byte* data,
                 std::size_t offset, std::size_t size);
/// @throws std::runtime_error if a page holds bytes that nobody wrote.
void read_pages(const tt::tt_metal::Buffer& buffer, std::size_t chip, std::byte* data,
                std::size_t offset, std::size_t size);
/// All of what a chip has of the buffer; pages that hold bytes that nobody wrote are filled with
/// ones, which are not numbers.
/// @return Whether any page was written.
bool read_written_pages(const tt::tt_metal::Buffer& buffer, std::size_t chip, std::byte* data);

}  // namespace ttcodegen::device
