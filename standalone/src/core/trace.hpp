#pragma once

// Traces of a device: what it is given between the begin and the end of a capture is recorded and
// does not take place; each replay does it again, on the memory that it had.
//
// An operation of ttnn is computed once while it is recorded, since that determines what it
// returns. What it changed is undone at the end of the capture, and what it returned has no values
// then: on a card nothing of it has run.
//
// Source of what is refused, and of the messages: tt_metal/distributed of tt-metal 0.70.1,
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

/// Who has which addresses of the emulated memories.
struct Addresses {
    explicit Addresses(device::EmulatedDevice& device);
    /// Exchanges them with those of the device.
    void swap(device::EmulatedDevice& device);

    device::Allocator dram;
    device::Allocator l1;
    device::Allocator l1_small;
};

/// What a replay does.
struct Trace {
    std::vector<std::function<void()>> steps;
    std::size_t programs = 0;
    /// As they were when the capture began; none if the device had no memories then.
    std::optional<Addresses> addresses;

    /// The minimum that the trace takes on a card.
    std::size_t bytes() const;
};

/// A capture that is under way.
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
    /// Records what happens between programs.
    void add(std::function<void()> step);
    /// Keeps what a buffer holds before it is written; does nothing if it was made since the begin.
    void keep(Buffer& buffer);
    /// Whether a buffer was made since the begin.
    bool made(const Buffer& buffer) const;
    /// A buffer that nothing has been written to when the capture ends.
    void add_result(std::shared_ptr<Buffer> buffer);

    /// Undoes what was computed, and gives what was recorded.
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

/// The capture that is under way; null if there is none.
Capture* current_capture();

/// Refuse what the host may not do between begin and end; nothing otherwise, nor as part of an
/// operation.
void refuse_write_in_capture();
void refuse_read_in_capture();
void refuse_event_in_capture();

/// Whether a trace is being replayed: what its steps allocate is allocated already.
bool is_replaying();

/// The traces of a device.
class Traces {
  public:
    /// @param region_bytes What the device has set aside for them; 0 takes it of free DRAM.
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
