#pragma once

#include <tt-metalium/mesh_command_queue.hpp>

#include "support/cpu/tensor.hpp"
#include "support/device_tensor.hpp"
#include "support/pages.hpp"
#include "support/tensors.hpp"

namespace support::cpu {

/// The elements of a tensor of the device, once all programs that it waits for have run.
inline Tensor from_device(const DeviceTensor& tensor) {
    const Array array = to_array(tensor);
    Tensor result{array.type, array.shape, std::vector<double>(count_of(array.shape))};
    for (std::size_t i = 0; i < result.elements.size(); ++i) {
        result.elements[i] = support::element_at(array.type, array.bytes.data(), i);
    }
    return result;
}

/// Overwrites a tensor of the device.
inline void to_device(const Tensor& tensor, const DeviceTensor& target) {
    const std::vector<std::byte> elements = stored(tensor.elements, tensor.element);
    const std::vector<std::byte> pages =
        to_pages({tensor.element, tensor.shape, elements.data()}, target.data_type, target.layout);
    // The pages end with this function, so the transfer has to.
    target.buffer->device()->mesh_command_queue().enqueue_write_mesh_buffer(
        target.buffer, pages.data(), /*blocking=*/true);
}

}  // namespace support::cpu
