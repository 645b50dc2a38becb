#include "support/device_writes.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <tt-metalium/mesh_command_queue.hpp>
#include <tt-metalium/mesh_device.hpp>
#include <vector>

#include "support/distribution.hpp"
#include "support/pages.hpp"

namespace support {

void write(const ArrayView& array, const TensorDescription& description, Tensor& tensor) {
    if (!std::ranges::equal(array.shape, description.shape())) {
        throw std::runtime_error("expected the shape " + shape_text(description.shape()) +
                                 ", found " + shape_text(array.shape));
    }
    if (description.division != undivided) {
        write_parts(array, tensor);
        return;
    }
    const std::vector<std::byte> pages = to_pages(array, description.data_type, description.layout);
    // The source is freed at the end of this function, so the transfer is blocking.
    tensor.buffer->device()->mesh_command_queue().enqueue_write_mesh_buffer(
        tensor.buffer, pages.data(), /*blocking=*/true);
}

}  // namespace support
