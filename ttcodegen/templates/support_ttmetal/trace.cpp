#include "support/trace.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <tt-metalium/mesh_command_queue.hpp>
#include <tt-metalium/mesh_device.hpp>
#include <vector>

#include "support/pages.hpp"

namespace support {

using tt::tt_metal::distributed::MeshDevice;

namespace {

constexpr std::uint8_t queue = 0;

}  // namespace

Trace::Trace(MeshDevice& device, const std::function<void()>& enqueue)
    : device_(device), id_(device.begin_mesh_trace(queue)) {
    std::exception_ptr failure;
    try {
        enqueue();
    } catch (...) {
        failure = std::current_exception();
    }
    // Whatever failed, the device has to leave the capture.
    try {
        device_.end_mesh_trace(queue, id_);
    } catch (...) {
        failure = failure == nullptr ? std::current_exception() : failure;
    }
    if (failure != nullptr) {
        device_.release_mesh_trace(id_);
        std::rethrow_exception(failure);
    }
}

Trace::~Trace() {
    try {
        device_.release_mesh_trace(id_);
    } catch (const std::exception&) {
        // Nobody could act on it: a device that is closed has no traces.
    }
}

void Trace::replay() { device_.replay_mesh_trace(queue, id_, /*blocking=*/false); }

void write(const ArrayView& array, const TensorDescription& description, Tensor& tensor) {
    if (!std::ranges::equal(array.shape, description.shape())) {
        throw std::runtime_error("expected the shape " + shape_text(description.shape()) +
                                 ", found " + shape_text(array.shape));
    }
    const std::vector<std::byte> pages = to_pages(array, description.data_type, description.layout);
    // The pages end with this function, so the transfer has to.
    tensor.buffer->device()->mesh_command_queue().enqueue_write_mesh_buffer(
        tensor.buffer, pages.data(), /*blocking=*/true);
}

}  // namespace support
