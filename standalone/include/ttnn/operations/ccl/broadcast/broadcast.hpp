#pragma once

#include <cstdint>
#include <optional>

#include "tt-metalium/sub_device_types.hpp"
#include "ttnn/distributed/types.hpp"
#include "ttnn/operations/ccl/ccl_host_types.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Copies the tensor of one device to all devices of its line. Devices of other lines would wait
/// forever, as there is one sender: the mesh must be a line.
Tensor broadcast(const Tensor& input_tensor, const MeshCoordinate& sender_coord,
                 std::optional<std::uint32_t> num_links = std::nullopt,
                 const std::optional<MemoryConfig>& memory_config = std::nullopt,
                 ccl::Topology topology = ccl::Topology::Linear,
                 std::optional<std::uint32_t> cluster_axis = std::nullopt,
                 std::optional<tt::tt_metal::SubDeviceId> subdevice_id = std::nullopt);

}  // namespace ttnn
