#include "support/trace.hpp"

#include <cstdint>
#include <exception>

namespace support {

using tt::tt_metal::distributed::MeshDevice;

namespace {

/// The default queue of ttnn calls, unless a thread selects another.
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
    // The capture must end whatever failed.
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
        // A destructor cannot report it: a closed device has no traces.
    }
}

void Trace::replay() { device_.replay_mesh_trace(queue, id_, /*blocking=*/false); }

}  // namespace support
