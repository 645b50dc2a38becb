#pragma once

// Traces of a device: commands between the begin and the end of a capture are recorded and not
// executed; each replay executes them on the captured memory.
//
// A ttnn operation is computed once while it is recorded, since this determines its result. Its
// side effects are undone at the end of the capture, and its results are then without values: on
// hardware nothing of it has run.
//
// Source of the refusals and their messages: tt_metal/distributed of tt-metal 0.70.1,
// mesh_device.cpp, mesh_trace.cpp and fd_mesh_command_queue.cpp.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "device/memory.hpp"
#include "tt-metalium/mesh_trace_id.hpp"

namespace tt::tt_metal::distributed {
class MeshDeviceImpl;
}  // namespace tt::tt_metal::distributed

namespace ttcodegen::device {
class EmulatedDevice;
}  // namespace ttcodegen::device

namespace ttcodegen::cpu {

class Buffer;

/// Ownership of addresses of the emulated memories.
struct Addresses {
    explicit Addresses(device::EmulatedDevice& device);
    /// Exchanges them with those of the device.
    void swap(device::EmulatedDevice& device);

    device::Allocator dram;
    device::Allocator l1;
    device::Allocator l1_small;
};

/// The recorded steps of a replay.
struct Trace {
    std::vector<std::function<void()>> steps;
    std::size_t programs = 0;
    /// Address ownership at the begin of the capture; none if the device had no memories then.
    std::optional<Addresses> addresses;

    /// The minimum size of the trace on hardware.
    std::size_t bytes() const;
};

/// A capture in progress.
class Capture {
  public:
    Capture(tt::tt_metal::distributed::MeshDeviceImpl& device, std::uint8_t queue,
            tt::tt_metal::distributed::MeshTraceId id);

    bool is_on(const tt::tt_metal::distributed::MeshDeviceImpl& device) const {
        return &device == &device_;
    }
    std::uint8_t queue() const { return queue_; }
    tt::tt_metal::distributed::MeshTraceId id() const { return id_; }

    /// Records programs that the device runs together.
    void add_programs(std::size_t count, std::function<void()> run);
    /// Records a step between programs.
    void add(std::function<void()> step);
    /// Saves a buffer's content before a write; does nothing if the capture created the buffer.
    void keep(Buffer& buffer);
    /// Returns whether a buffer was created during the capture.
    bool made(const Buffer& buffer) const;
    /// Registers a buffer that has no values when the capture ends.
    void add_result(std::shared_ptr<Buffer> buffer);

    /// Undoes the computation and returns the recorded steps.
    Trace end();

  private:
    tt::tt_metal::distributed::MeshDeviceImpl& device_;
    std::uint8_t queue_;
    tt::tt_metal::distributed::MeshTraceId id_;
    std::uint64_t first_buffer_;
    Trace trace_;
    std::vector<std::shared_ptr<Buffer>> results_;
    std::mutex mutex_;
    std::unordered_map<Buffer*, std::vector<std::byte>> kept_;
};

/// The capture in progress; null if there is none.
Capture* current_capture();

/// Refuse host accesses during a capture; no effect outside of captures and within
/// operations.
void refuse_write_in_capture();
void refuse_read_in_capture();
void refuse_event_in_capture();

/// Returns whether a trace is being replayed, in which case its steps allocate nothing.
bool is_replaying();

/// The traces of a device.
class Traces {
  public:
    /// @param region_bytes The device's trace region; 0 allocates traces in free DRAM.
    Traces(tt::tt_metal::distributed::MeshDeviceImpl& device, std::size_t region_bytes)
        : device_(device), region_bytes_(region_bytes) {}
    ~Traces();
    Traces(const Traces&) = delete;
    Traces& operator=(const Traces&) = delete;
    Traces(Traces&&) = delete;
    Traces& operator=(Traces&&) = delete;

    static tt::tt_metal::distributed::MeshTraceId next_id();
    void begin(std::uint8_t queue, tt::tt_metal::distributed::MeshTraceId id);
    void end(std::uint8_t queue, tt::tt_metal::distributed::MeshTraceId id);
    void replay(tt::tt_metal::distributed::MeshTraceId id) const;
    void release(tt::tt_metal::distributed::MeshTraceId id);
    std::size_t bytes() const;

  private:
    tt::tt_metal::distributed::MeshDeviceImpl& device_;
    std::size_t region_bytes_;
    std::map<tt::tt_metal::distributed::MeshTraceId, Trace> traces_;
};

}  // namespace ttcodegen::cpu
