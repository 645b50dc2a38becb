#pragma once

#include <cstdint>
#include <optional>

#include "tt-metalium/sub_device_types.hpp"
#include "ttnn/distributed/types.hpp"
#include "ttnn/operations/ccl/ccl_host_types.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// What one device of a line has, on all of them. Devices of other lines would wait for ever, as
/// there is one sender: the mesh is a line.
Tensor broadcast(const Tensor& input_tensor, const MeshCoordinate& sender_coord,
                 std::optional<std::uint32_t> num_links = std::nullopt,
                 const std::optional<MemoryConfig>& memory_config = std::nullopt,
                 ccl::Topology topology = ccl::Topology::Linear,
                 std::optional<std::uint32_t> cluster_axis = std::nullopt,
                 std::optional<tt::tt_metal::SubDeviceId> subdevice_id = std::nullopt);

}  // namespace ttnn
