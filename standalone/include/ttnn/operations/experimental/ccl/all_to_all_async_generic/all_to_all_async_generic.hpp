#pragma once

#include <cstdint>
#include <optional>

#include "tt-metalium/sub_device_types.hpp"
#include "ttnn/operations/ccl/ccl_host_types.hpp"
#include "ttnn/types.hpp"

namespace ttnn::experimental {

/// All-to-all along a mesh axis: each device gets its slice along `out_dim` of the tensors of all
/// devices, concatenated along `in_dim`.
Tensor all_to_all_async_generic(
    const Tensor& input_tensor, std::int32_t in_dim, std::int32_t out_dim,
    const std::optional<Tensor>& persistent_output_buffer = std::nullopt,
    std::optional<std::uint32_t> num_links = std::nullopt,
    const std::optional<MemoryConfig>& memory_config = std::nullopt,
    std::optional<ccl::Topology> topology = std::nullopt,
    std::optional<tt::tt_metal::SubDeviceId> subdevice_id = std::nullopt,
    std::optional<std::uint32_t> cluster_axis = std::nullopt);

}  // namespace ttnn::experimental
