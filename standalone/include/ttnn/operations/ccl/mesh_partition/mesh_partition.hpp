#pragma once

#include <cstdint>
#include <optional>

#include "ttnn/types.hpp"

namespace ttnn {

/// Slices the tensor of each device by the device's position along an axis of the mesh.
Tensor mesh_partition(const Tensor& input_tensor, std::int32_t dim,
                      std::optional<std::uint32_t> cluster_axis,
                      const std::optional<MemoryConfig>& memory_config = std::nullopt);

}  // namespace ttnn
