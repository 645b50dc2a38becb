#pragma once

#include <optional>

#include "tt-metalium/mesh_trace_id.hpp"
#include "ttnn/common/queue_id.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

using MeshTraceId = tt::tt_metal::distributed::MeshTraceId;

namespace operations::trace {

/// Begins a capture: until its end, operations are recorded instead of run. Their results have
/// memory, but no values before the trace is executed.
/// @throws std::runtime_error if the command queue is already capturing.
MeshTraceId begin_trace_capture(MeshDevice* device, std::optional<QueueId> cq_id);
/// Ends the capture of that trace.
/// @throws std::runtime_error if the command queue does not capture it, or the trace exceeds the
/// trace region that the device was opened with.
void end_trace_capture(MeshDevice* device, MeshTraceId trace_id, std::optional<QueueId> cq_id);
/// Replays the captured operations on the same memory.
/// @throws std::runtime_error if there is no such trace.
void execute_trace(MeshDevice* device, MeshTraceId trace_id, std::optional<QueueId> cq_id,
                   bool blocking);
/// Releases a trace.
void release_trace(MeshDevice* device, MeshTraceId trace_id);

}  // namespace operations::trace

}  // namespace ttnn
