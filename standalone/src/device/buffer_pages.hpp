/// Copies pages between the host and the banks of a buffer.
#pragma once

#include <cstddef>

#include "device/emulated_device.hpp"
#include "tt-metalium/buffer.hpp"

namespace ttcodegen::device {

/// @throws std::runtime_error if the device of a buffer is not a mesh device of this backend.
EmulatedDevice& emulated_device(tt::tt_metal::IDevice* device);

/// Bytes `offset` to `offset + size` of a chip's part of the buffer; both multiples of the page
/// size.
void write_pages(const tt::tt_metal::Buffer& buffer, std::size_t chip, const std::byte* data,
                 std::size_t offset, std::size_t size);
/// @throws std::runtime_error if a page holds bytes that were never written.
void read_pages(const tt::tt_metal::Buffer& buffer, std::size_t chip, std::byte* data,
                std::size_t offset, std::size_t size);
/// Reads a chip's whole part of the buffer; pages with bytes that were never written are filled
/// with ones, which are NaNs.
/// @return whether any page was written.
bool read_written_pages(const tt::tt_metal::Buffer& buffer, std::size_t chip, std::byte* data);

}  // namespace ttcodegen::device
