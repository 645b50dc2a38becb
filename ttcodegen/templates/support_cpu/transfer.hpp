#pragma once

#include <tt-metalium/mesh_command_queue.hpp>
#include <utility>

#include "support/cpu/tensor.hpp"
#include "support/device_tensor.hpp"
#include "support/pages.hpp"
#include "support/tensors.hpp"

namespace support::cpu {

inline Tensor from_array(const Array& array) {
    Tensor result{array.type, array.shape, std::vector<double>(count_of(array.shape))};
    for (std::size_t i = 0; i < result.elements.size(); ++i) {
        result.elements[i] = support::element_at(array.type, array.bytes.data(), i);
    }
    return result;
}

/// The elements of a tensor of the device, once all programs that it waits for have run.
inline Tensor from_device(const DeviceTensor& tensor) { return from_array(to_array(tensor)); }

/// The pages that a tensor of the device has of these elements.
inline std::vector<std::byte> pages_for(const Tensor& tensor, const DeviceTensor& target) {
    const std::vector<std::byte> elements = stored(tensor.elements, tensor.element);
    return to_pages({tensor.element, tensor.shape, elements.data()}, target.data_type,
                    target.layout);
}

/// Overwrites a tensor of the device.
inline void to_device(const Tensor& tensor, const DeviceTensor& target) {
    const std::vector<std::byte> pages = pages_for(tensor, target);
    // The pages end with this function, so the transfer has to.
    target.buffer->device()->mesh_command_queue().enqueue_write_mesh_buffer(
        target.buffer, pages.data(), /*blocking=*/true);
}

/// A new tensor of the device with the elements of one on the host, or of one for each chip of a
/// mesh; the arguments are those of `create_tensor`.
template <typename Host, typename... Placement>
DeviceTensor copy_to_device(const Host& host, std::vector<std::uint64_t> shape,
                            Placement&&... placement) {
    DeviceTensor target = create_tensor(std::move(shape), std::forward<Placement>(placement)...);
    to_device(host, target);
    return target;
}

}  // namespace support::cpu
