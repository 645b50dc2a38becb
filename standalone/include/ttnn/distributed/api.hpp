#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ttnn/distributed/types.hpp"
#include "ttnn/tensor/tensor.hpp"

namespace ttnn::distributed {

/// A mesh of devices; the CPU backend has 1x1 meshes only.
/// @throws std::runtime_error for any other mesh shape.
std::shared_ptr<MeshDevice> open_mesh_device(
    const MeshShape& mesh_shape, size_t l1_small_size, size_t trace_region_size,
    size_t num_command_queues, const tt::tt_metal::DispatchCoreConfig& dispatch_core_config,
    const std::optional<MeshCoordinate>& offset = std::nullopt,
    const std::vector<int>& physical_device_ids = {},
    size_t worker_l1_size = DEFAULT_WORKER_L1_SIZE);

void close_mesh_device(const std::shared_ptr<MeshDevice>& mesh_device);

}  // namespace ttnn::distributed
