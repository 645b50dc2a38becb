#pragma once

#include <optional>

#include "ttnn/common/queue_id.hpp"
#include "ttnn/core.hpp"
#include "ttnn/operations/core/to_dtype/to_dtype_op.hpp"
#include "ttnn/operations/core/to_layout/to_layout_op.hpp"
#include "ttnn/operations/core/to_memory_config/to_memory_config_op.hpp"
#include "ttnn/operations/data_movement/reshape_view/reshape.hpp"
#include "ttnn/tensor/tensor.hpp"
#include "ttnn/tensor/types.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

namespace operations::core {

ttnn::Tensor unsqueeze_to_4D(const ttnn::Tensor& tensor);
ttnn::Tensor squeeze_from_4D(const ttnn::Tensor& tensor, int rank);

/// Moves a tensor to the device; a device tensor is returned unchanged.
ttnn::Tensor to_device(const ttnn::Tensor& tensor, MeshDevice* mesh_device,
                       const std::optional<MemoryConfig>& memory_config,
                       std::optional<QueueId> queue_id = std::nullopt);
/// Moves a tensor to the host; a host tensor is returned unchanged.
ttnn::Tensor from_device(const ttnn::Tensor& tensor, bool blocking = true,
                         std::optional<QueueId> queue_id = std::nullopt);
/// Frees the device memory, with `force` even if other tensors share it.
void deallocate(Tensor& tensor, bool force = true);
/// Moves a tensor to another address.
Tensor reallocate(const Tensor& input_tensor, const std::optional<MemoryConfig>& memory_config);

}  // namespace operations::core

using operations::core::deallocate;
using operations::core::from_device;
using operations::core::reallocate;
using operations::core::squeeze_from_4D;
using operations::core::to_device;
using operations::core::unsqueeze_to_4D;

}  // namespace ttnn
