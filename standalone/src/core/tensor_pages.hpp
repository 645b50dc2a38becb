#pragma once

// Tensors in the memories of the emulated device. Operations of the library compute on elements in
// row-major order; programs of kernels read and write pages, which are made of the elements before
// such a program runs, and become elements again afterwards.

#include <cstddef>
#include <memory>
#include <vector>

#include "core/tensor_data.hpp"
#include "tt-metalium/buffer.hpp"

namespace ttcodegen::cpu {

/// The memory of a tensor on all devices of its mesh; allocated on first use.
tt::tt_metal::Buffer& memory_of(const Tensor& tensor);

/// The same memory, which this does not hold: its addresses stay when the tensor is gone.
std::shared_ptr<tt::tt_metal::Buffer> lasting_memory_of(const Tensor& tensor);

/// What a tensor of one device holds, page by page.
std::vector<std::byte> pages_of(const Tensor& tensor);

/// Gives a tensor of one device the elements that its pages hold.
void store_pages(const Tensor& tensor, const std::vector<std::byte>& pages);

}  // namespace ttcodegen::cpu
