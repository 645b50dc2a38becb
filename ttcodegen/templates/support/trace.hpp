#pragma once

#include <functional>
#include <tt-metalium/mesh_device.hpp>
#include <tt-metalium/mesh_trace_id.hpp>

namespace support {

/// What a device was given once, to be given again with one call: the same programs, in the same
/// order, on the same memory.
class Trace {
  public:
    /// Captures what `enqueue` gives the device; nothing of it runs yet. Its programs have to have
    /// run before, and it must not read or write tensors from the host.
    /// @throws what `enqueue` throws, and std::runtime_error if the library refuses the capture.
    Trace(tt::tt_metal::distributed::MeshDevice& device, const std::function<void()>& enqueue);
    Trace(const Trace&) = delete;
    Trace& operator=(const Trace&) = delete;
    ~Trace();

    /// Runs it after all that was enqueued before; does not wait for it.
    void replay();

  private:
    tt::tt_metal::distributed::MeshDevice& device_;
    tt::tt_metal::distributed::MeshTraceId id_;
};

}  // namespace support
