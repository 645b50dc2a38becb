#pragma once

// Tensors in the memories of the emulated device. ttnn operations compute on elements in row-major
// order; device programs read and write pages, which are packed from the elements before such a
// program runs, and unpacked afterwards.

#include <cstddef>
#include <memory>
#include <vector>

#include "core/tensor_data.hpp"
#include "tt-metalium/buffer.hpp"

namespace ttcodegen::cpu {

/// The device memory of a tensor on all devices of its mesh; allocated on first use.
tt::tt_metal::Buffer& memory_of(const Tensor& tensor);

/// The same memory without ownership of the tensor: its addresses stay when the tensor is freed.
std::shared_ptr<tt::tt_metal::Buffer> lasting_memory_of(const Tensor& tensor);

/// Packs the elements of a tensor of one device as pages.
std::vector<std::byte> pages_of(const Tensor& tensor);

/// Unpacks pages to the elements of a tensor of one device.
void store_pages(const Tensor& tensor, const std::vector<std::byte>& pages);

}  // namespace ttcodegen::cpu
