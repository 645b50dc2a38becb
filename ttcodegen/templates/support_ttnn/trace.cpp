#include "support/trace.hpp"

#include <exception>
#include <optional>
#include <ttnn/operations/trace.hpp>
#include <ttnn/tensor/tensor_ops.hpp>

namespace support {

namespace trace = ttnn::operations::trace;

Trace::Trace(ttnn::MeshDevice& device, const std::function<void()>& enqueue)
    : device_(device), id_(trace::begin_trace_capture(&device, std::nullopt)) {
    std::exception_ptr failure;
    try {
        enqueue();
    } catch (...) {
        failure = std::current_exception();
    }
    // Whatever failed, the device has to leave the capture.
    try {
        trace::end_trace_capture(&device_, id_, std::nullopt);
    } catch (...) {
        failure = failure == nullptr ? std::current_exception() : failure;
    }
    if (failure != nullptr) {
        trace::release_trace(&device_, id_);
        std::rethrow_exception(failure);
    }
}

Trace::~Trace() {
    try {
        trace::release_trace(&device_, id_);
    } catch (const std::exception&) {
        // Nobody could act on it: a device that is closed has no traces.
    }
}

void Trace::replay() { trace::execute_trace(&device_, id_, std::nullopt, /*blocking=*/false); }

void write(const ArrayView& array, const TensorDescription& description, ttnn::Tensor& tensor) {
    TensorDescription on_host = description;
    on_host.memory = Memory::host;
    tt::tt_metal::copy_to_device(to_tensor(array, on_host, *tensor.device()), tensor);
}

}  // namespace support
