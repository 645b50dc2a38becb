#pragma once

#include <cstdint>
#include <optional>

#include "tt-metalium/experimental/fabric/fabric_edm_types.hpp"
#include "tt-metalium/sub_device_types.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Sums the tensors of the devices along a mesh axis, on each of them.
Tensor all_reduce(const Tensor& input_tensor,
                  std::optional<std::uint32_t> cluster_axis = std::nullopt,
                  const std::optional<tt::tt_metal::SubDeviceId>& subdevice_id = std::nullopt,
                  const std::optional<MemoryConfig>& memory_config = std::nullopt,
                  std::optional<std::uint32_t> num_links = std::nullopt,
                  std::optional<tt::tt_fabric::Topology> topology = std::nullopt);

}  // namespace ttnn
