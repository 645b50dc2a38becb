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

/// Reads a device tensor after the programs that write it have run.
inline Tensor from_device(const DeviceTensor& tensor) { return from_array(to_array(tensor)); }

/// Elements as the pages of a device tensor.
inline std::vector<std::byte> pages_for(const Tensor& tensor, const DeviceTensor& target) {
    const std::vector<std::byte> elements = stored(tensor.elements, tensor.element);
    return to_pages({tensor.element, tensor.shape, elements.data()}, target.data_type,
                    target.layout);
}

/// Overwrites a device tensor.
inline void to_device(const Tensor& tensor, const DeviceTensor& target) {
    const std::vector<std::byte> pages = pages_for(tensor, target);
    // The source is freed at the end of this function, so the transfer is blocking.
    target.buffer->device()->mesh_command_queue().enqueue_write_mesh_buffer(
        target.buffer, pages.data(), /*blocking=*/true);
}

/// Creates a device tensor from a host tensor, or from one for each device of a mesh; the arguments
/// are those of `create_tensor`.
template <typename Host, typename... Placement>
DeviceTensor copy_to_device(const Host& host, std::vector<std::uint64_t> shape,
                            Placement&&... placement) {
    DeviceTensor target = create_tensor(std::move(shape), std::forward<Placement>(placement)...);
    to_device(host, target);
    return target;
}

}  // namespace support::cpu
