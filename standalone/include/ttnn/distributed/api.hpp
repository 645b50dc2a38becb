#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ttnn/distributed/types.hpp"
#include "ttnn/tensor/tensor.hpp"

namespace ttnn::distributed {

/// Opens a mesh of devices with separate memories.
/// @throws std::runtime_error for more devices than the CPU backend has, or for more than two
/// dimensions.
std::shared_ptr<MeshDevice> open_mesh_device(
    const MeshShape& mesh_shape, size_t l1_small_size, size_t trace_region_size,
    size_t num_command_queues, const tt::tt_metal::DispatchCoreConfig& dispatch_core_config,
    const std::optional<MeshCoordinate>& offset = std::nullopt,
    const std::vector<int>& physical_device_ids = {},
    size_t worker_l1_size = DEFAULT_WORKER_L1_SIZE);

void close_mesh_device(const std::shared_ptr<MeshDevice>& mesh_device);

/// The tensors of the devices; the tensor itself for a single device.
std::vector<Tensor> get_device_tensors(const Tensor& tensor);

/// Combines host shards of the same shape, layout and data type into one tensor.
Tensor from_host_shards(const std::vector<Tensor>& tensor_shards, const MeshShape& mesh_shape,
                        int shard_dim = 0);

}  // namespace ttnn::distributed
