#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ttnn/distributed/types.hpp"
#include "ttnn/tensor/tensor.hpp"

namespace ttnn::distributed {

/// A mesh of devices, each with memories of its own.
/// @throws std::runtime_error for a mesh of more devices than the CPU backend has, or of more than
/// two dimensions.
std::shared_ptr<MeshDevice> open_mesh_device(
    const MeshShape& mesh_shape, size_t l1_small_size, size_t trace_region_size,
    size_t num_command_queues, const tt::tt_metal::DispatchCoreConfig& dispatch_core_config,
    const std::optional<MeshCoordinate>& offset = std::nullopt,
    const std::vector<int>& physical_device_ids = {},
    size_t worker_l1_size = DEFAULT_WORKER_L1_SIZE);

void close_mesh_device(const std::shared_ptr<MeshDevice>& mesh_device);

/// The tensors of the single devices; the tensor itself if there is one device.
std::vector<Tensor> get_device_tensors(const Tensor& tensor);

/// One tensor of parts on the host, which have the same shape, layout and data type.
Tensor from_host_shards(const std::vector<Tensor>& tensor_shards, const MeshShape& mesh_shape,
                        int shard_dim = 0);

}  // namespace ttnn::distributed
