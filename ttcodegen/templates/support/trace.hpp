#pragma once

#include <functional>
#include <tt-metalium/mesh_device.hpp>
#include <tt-metalium/mesh_trace_id.hpp>

namespace support {

/// A captured sequence of device commands that is replayed with one call: the same programs, in the
/// same order, on the same memory.
class Trace {
  public:
    /// Captures the commands that `enqueue` issues, without running them. Its programs must be
    /// compiled, and it must not transfer tensors from or to the host.
    /// @throws what `enqueue` throws, and std::runtime_error if the library refuses the capture.
    Trace(tt::tt_metal::distributed::MeshDevice& device, const std::function<void()>& enqueue);
    Trace(const Trace&) = delete;
    Trace& operator=(const Trace&) = delete;
    ~Trace();

    /// Enqueues the trace after all earlier commands; does not wait for it.
    void replay();

  private:
    tt::tt_metal::distributed::MeshDevice& device_;
    tt::tt_metal::distributed::MeshTraceId id_;
};

}  // namespace support
