#include "core/trace.hpp"

#include <atomic>
#include <cstring>
#include <utility>

#include "core/call_report.hpp"
#include "core/device.hpp"
#include "core/tensor_data.hpp"
#include "device/emulated_device.hpp"
#include "tt-metalium/math.hpp"
#include "ttnn/operations/trace.hpp"

namespace ttcodegen::cpu {

using tt::tt_metal::distributed::MeshDeviceImpl;
using tt::tt_metal::distributed::MeshTraceId;

namespace {

std::unique_ptr<Capture> capture_under_way;
std::atomic<bool> replaying = false;

/// The minimum that the dispatcher reads for a program: a wait, runtime arguments, the launch
/// message and the go signal, each a command of one aligned line.
constexpr std::size_t kLeastProgramBytes = 4 * 64;
/// The minimum size of a page of a trace.
constexpr std::size_t kLeastPageBytes = 1024;

/// All bits set: NaN as a float, and no valid index.
constexpr int kNoValue = 0xff;

}  // namespace

Addresses::Addresses(device::EmulatedDevice& device)
    : dram(device.dram()), l1(device.l1()), l1_small(device.l1_small()) {}

void Addresses::swap(device::EmulatedDevice& device) {
    std::swap(dram, device.dram());
    std::swap(l1, device.l1());
    std::swap(l1_small, device.l1_small());
}

std::size_t Trace::bytes() const {
    return tt::round_up(programs * kLeastProgramBytes, kLeastPageBytes);
}

Capture::Capture(MeshDeviceImpl& device, std::uint8_t queue, MeshTraceId id)
    : device_(device), queue_(queue), id_(id), first_buffer_(Buffer::made_so_far()) {
    if (device.has_emulated()) {
        trace_.addresses.emplace(device.emulated());
    }
}

void Capture::add_programs(std::size_t count, std::function<void()> run) {
    add(std::move(run));
    trace_.programs += count;
}

void Capture::add(std::function<void()> step) { trace_.steps.push_back(std::move(step)); }

bool Capture::made(const Buffer& buffer) const { return buffer.number() >= first_buffer_; }

void Capture::keep(Buffer& buffer) {
    if (made(buffer)) {
        return;
    }
    const std::lock_guard lock(mutex_);
    const auto [kept, is_first] = kept_.try_emplace(&buffer);
    if (is_first) {
        kept->second.assign(buffer.data(), buffer.data() + buffer.bytes());
    }
}

void Capture::add_result(std::shared_ptr<Buffer> buffer) { results_.push_back(std::move(buffer)); }

Trace Capture::end() {
    for (const auto& [buffer, bytes] : kept_) {
        std::memcpy(buffer->data(), bytes.data(), bytes.size());
        buffer->forget_derived();
    }
    for (const auto& buffer : results_) {
        std::memset(buffer->data(), kNoValue, buffer->bytes());
        buffer->forget_derived();
    }
    return std::move(trace_);
}

Capture* current_capture() { return capture_under_way.get(); }

void refuse_write_in_capture() {
    TT_FATAL(current_capture() == nullptr || is_inside_call(),
             "Writes are not supported during trace capture. trace id: {}",
             current_capture()->id().get());
}

void refuse_read_in_capture() {
    TT_FATAL(current_capture() == nullptr || is_inside_call(),
             "Reads are not supported during trace capture.");
}

void refuse_event_in_capture() {
    TT_FATAL(current_capture() == nullptr,
             "Event Synchronization is not supported during trace capture.");
}

bool is_replaying() { return replaying; }

Traces::~Traces() {
    if (current_capture() != nullptr && current_capture()->is_on(device_)) {
        capture_under_way.reset();
    }
}

MeshTraceId Traces::next_id() {
    static std::atomic<std::uint32_t> next = 0;
    return MeshTraceId(next++);
}

void Traces::begin(std::uint8_t queue, MeshTraceId id) {
    const Capture* other = current_capture();
    TT_FATAL(other == nullptr || !other->is_on(device_) || other->queue() != queue,
             "CQ {} is already being used for tracing tid {}", static_cast<std::uint32_t>(queue),
             other->id().get());
    TT_FATAL(other == nullptr, "The CPU backend captures one trace at a time");
    TT_FATAL(!traces_.contains(id), "Trace already exists for tid {} on the device", id.get());
    capture_under_way = std::make_unique<Capture>(device_, queue, id);
}

void Traces::end(std::uint8_t queue, MeshTraceId id) {
    Capture* capture = current_capture();
    TT_FATAL(capture != nullptr && capture->is_on(device_) && capture->queue() == queue &&
                 capture->id() == id,
             "CQ {} is not being used for tracing tid {}", static_cast<std::uint32_t>(queue),
             id.get());
    Trace trace = capture->end();
    capture_under_way.reset();
    const std::size_t total = bytes() + trace.bytes();
    TT_FATAL(region_bytes_ == 0 || total <= region_bytes_,
             "Creating trace buffers of size {}B on MeshDevice {}, but only {}B is allocated for "
             "trace region.",
             total, 0, region_bytes_);
    traces_.emplace(id, std::move(trace));
}

void Traces::replay(MeshTraceId id) const {
    TT_FATAL(traces_.contains(id), "Trace instance {} must exist on the Mesh device", id.get());
    TT_FATAL(current_capture() == nullptr, "A trace cannot be replayed during trace capture.");
    const Trace& trace = traces_.at(id);
    std::optional<Addresses> addresses = trace.addresses;
    // If a step throws, the memory must be back with its owners.
    struct Replay {
        Replay(MeshDeviceImpl& device, std::optional<Addresses>& addresses)
            : device(device), addresses(addresses) {
            replaying = true;
            swap();
        }
        ~Replay() {
            swap();
            replaying = false;
        }
        Replay(const Replay&) = delete;
        Replay& operator=(const Replay&) = delete;
        Replay(Replay&&) = delete;
        Replay& operator=(Replay&&) = delete;
        void swap() const {
            if (addresses) {
                addresses->swap(device.emulated());
            }
        }
        MeshDeviceImpl& device;
        std::optional<Addresses>& addresses;
    };
    const Replay replay(device_, addresses);
    for (const auto& step : trace.steps) {
        step();
    }
}

void Traces::release(MeshTraceId id) { traces_.erase(id); }

std::size_t Traces::bytes() const {
    std::size_t total = 0;
    for (const auto& [id, trace] : traces_) {
        total += trace.bytes();
    }
    return total;
}

}  // namespace ttcodegen::cpu

namespace tt::tt_metal::distributed {

MeshTraceId MeshDevice::begin_mesh_trace(std::uint8_t cq_id) {
    const MeshTraceId id = ttcodegen::cpu::Traces::next_id();
    begin_mesh_trace(cq_id, id);
    return id;
}

void MeshDevice::begin_mesh_trace(std::uint8_t cq_id, const MeshTraceId& trace_id) {
    mesh_command_queue(cq_id);
    pimpl_->traces.begin(cq_id, trace_id);
}

void MeshDevice::end_mesh_trace(std::uint8_t cq_id, const MeshTraceId& trace_id) {
    pimpl_->traces.end(cq_id, trace_id);
}

void MeshDevice::replay_mesh_trace(std::uint8_t cq_id, const MeshTraceId& trace_id,
                                   bool /*blocking*/) {
    mesh_command_queue(cq_id);
    pimpl_->traces.replay(trace_id);
}

void MeshDevice::release_mesh_trace(const MeshTraceId& trace_id) {
    pimpl_->traces.release(trace_id);
}

std::uint32_t MeshDevice::get_trace_buffers_size() const {
    return static_cast<std::uint32_t>(pimpl_->traces.bytes());
}

MeshTraceId BeginTraceCapture(MeshDevice* device, std::uint8_t cq_id) {
    return device->begin_mesh_trace(cq_id);
}

}  // namespace tt::tt_metal::distributed

namespace ttnn::operations::trace {

namespace {

std::uint8_t queue_of(std::optional<QueueId> cq_id) { return cq_id.value_or(QueueId(0)).get(); }

}  // namespace

MeshTraceId begin_trace_capture(MeshDevice* device, std::optional<QueueId> cq_id) {
    return device->begin_mesh_trace(queue_of(cq_id));
}

void end_trace_capture(MeshDevice* device, MeshTraceId trace_id, std::optional<QueueId> cq_id) {
    device->end_mesh_trace(queue_of(cq_id), trace_id);
}

void execute_trace(MeshDevice* device, MeshTraceId trace_id, std::optional<QueueId> cq_id,
                   bool blocking) {
    device->replay_mesh_trace(queue_of(cq_id), trace_id, blocking);
}

void release_trace(MeshDevice* device, MeshTraceId trace_id) {
    device->release_mesh_trace(trace_id);
}

}  // namespace ttnn::operations::trace
