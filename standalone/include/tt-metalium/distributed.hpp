#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tt-metalium/buffer.hpp"
#include "tt-metalium/mesh_buffer.hpp"
#include "tt-metalium/mesh_command_queue.hpp"
#include "tt-metalium/mesh_coord.hpp"
#include "tt-metalium/mesh_device.hpp"
#include "tt-metalium/mesh_trace_id.hpp"
#include "tt-metalium/mesh_workload.hpp"
#include "tt-metalium/sub_device_types.hpp"
#include "tt_stl/span.hpp"

namespace tt::tt_metal::distributed {

/// Runs the programs of a workload.
/// @throws std::runtime_error with the diagnosis if a kernel does not compile, fails, or
/// deadlocks.
void EnqueueMeshWorkload(MeshCommandQueue& mesh_cq, MeshWorkload& mesh_workload, bool blocking);

template <typename DType>
void WriteShard(MeshCommandQueue& mesh_cq, const std::shared_ptr<MeshBuffer>& mesh_buffer,
                std::vector<DType>& src, const MeshCoordinate& coord, bool blocking = false) {
    mesh_cq.enqueue_write_shards(mesh_buffer, {ShardDataTransfer{coord}.host_data(src.data())},
                                 blocking);
}

template <typename DType>
void ReadShard(MeshCommandQueue& mesh_cq, std::vector<DType>& dst,
               const std::shared_ptr<MeshBuffer>& mesh_buffer, const MeshCoordinate& coord,
               bool blocking = true) {
    const Buffer* shard = mesh_buffer->get_device_buffer(coord);
    dst.resize(shard->page_size() * shard->num_pages() / sizeof(DType));
    mesh_cq.enqueue_read_shards({ShardDataTransfer{coord}.host_data(dst.data())}, mesh_buffer,
                                blocking);
}

template <typename DType>
void EnqueueWriteMeshBuffer(MeshCommandQueue& mesh_cq, std::shared_ptr<MeshBuffer>& mesh_buffer,
                            const std::vector<DType>& src, bool blocking = false) {
    mesh_cq.enqueue_write_mesh_buffer(mesh_buffer, src.data(), blocking);
}

template <typename DType>
void EnqueueReadMeshBuffer(MeshCommandQueue& mesh_cq, std::vector<DType>& dst,
                           std::shared_ptr<MeshBuffer>& mesh_buffer, bool blocking = true) {
    if (mesh_buffer->global_layout() == MeshBufferLayout::SHARDED) {
        dst.resize(mesh_buffer->global_shard_spec().global_size / sizeof(DType));
    } else {
        dst.resize(mesh_buffer->size() / sizeof(DType));
    }
    mesh_cq.enqueue_read_mesh_buffer(dst.data(), mesh_buffer, blocking);
}

/// Begins the capture of a command queue's commands as a trace.
MeshTraceId BeginTraceCapture(MeshDevice* device, std::uint8_t cq_id);

void Finish(MeshCommandQueue& mesh_cq, ttsl::Span<const SubDeviceId> sub_device_ids = {});

}  // namespace tt::tt_metal::distributed
