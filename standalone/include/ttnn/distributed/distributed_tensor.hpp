#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "ttnn/common/queue_id.hpp"
#include "ttnn/distributed/distributed_configs.hpp"
#include "ttnn/distributed/types.hpp"
#include "ttnn/tensor/tensor.hpp"

namespace ttnn::distributed {

using MeshMapperConfig = tt::tt_metal::distributed::MeshMapperConfig;
using MeshComposerConfig = tt::tt_metal::distributed::MeshComposerConfig;

/// Distributes a host tensor over the devices of a mesh.
class TensorToMesh {
  public:
    ~TensorToMesh();
    TensorToMesh(TensorToMesh&& other) noexcept;
    TensorToMesh& operator=(TensorToMesh&& other) noexcept;
    TensorToMesh(const TensorToMesh&) = delete;
    TensorToMesh& operator=(const TensorToMesh&) = delete;

    /// @throws std::runtime_error if the config does not fit the mesh.
    static TensorToMesh create(const MeshDevice& mesh_device, const MeshMapperConfig& config);

    /// The shards of the devices, on the host.
    /// @throws std::runtime_error if the tensor cannot be sharded as configured.
    Tensor operator()(const Tensor& tensor) const;

    const MeshMapperConfig& config() const;

  private:
    class Impl;
    explicit TensorToMesh(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

std::unique_ptr<TensorToMesh> create_mesh_mapper(MeshDevice& mesh_device,
                                                 const MeshMapperConfig& config);
std::unique_ptr<TensorToMesh> replicate_tensor_to_mesh_mapper(MeshDevice& mesh_device);
/// Shards along one axis of the mesh; without an axis, over all of its devices.
std::unique_ptr<TensorToMesh> shard_tensor_to_mesh_mapper(
    MeshDevice& mesh_device, int dim, std::optional<int> cluster_axis = std::nullopt);

/// Composes a tensor from its shards on the devices of a mesh.
class MeshToTensor {
  public:
    ~MeshToTensor();
    MeshToTensor(MeshToTensor&& other) noexcept;
    MeshToTensor& operator=(MeshToTensor&& other) noexcept;
    MeshToTensor(const MeshToTensor&) = delete;
    MeshToTensor& operator=(const MeshToTensor&) = delete;

    /// @throws std::runtime_error if the config does not fit the mesh.
    static MeshToTensor create(const MeshDevice& mesh_device, const MeshComposerConfig& config);

    /// The whole tensor, on the host.
    Tensor compose(const Tensor& tensor) const;

  private:
    class Impl;
    explicit MeshToTensor(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

std::unique_ptr<MeshToTensor> create_mesh_composer(MeshDevice& mesh_device,
                                                   const MeshComposerConfig& config);
std::unique_ptr<MeshToTensor> concat_mesh_to_tensor_composer(MeshDevice& mesh_device, int dim);

/// Distributes a host tensor; the shards are on the devices if any are given.
Tensor distribute_tensor(
    const Tensor& tensor, const TensorToMesh& mapper,
    std::optional<std::reference_wrapper<MeshDevice>> mesh_device = std::nullopt,
    std::optional<ttnn::QueueId> cq_id = std::nullopt);

/// Composes a tensor from the shards of the devices, on the host.
Tensor aggregate_tensor(const Tensor& tensor, const MeshToTensor& composer);

}  // namespace ttnn::distributed
