#pragma once

#include <cstdint>
#include <optional>

#include "tt-metalium/experimental/fabric/fabric_edm_types.hpp"
#include "tt-metalium/sub_device_types.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Returns the results of experts to the devices of their tokens. The input has the results of each
/// device's experts for all tokens along `axis` (experts of the device, batch, sequence, hidden),
/// the output one row for each of the k experts of a token in `expert_metadata_tensor`, (1, batch,
/// sequence, k), or zeros for an expert of none of these devices.
/// @return (k, batch of the device, sequence, hidden).
Tensor all_to_all_combine(
    const Tensor& input_tensor, const Tensor& expert_mapping_tensor,
    const Tensor& expert_metadata_tensor, bool locally_reduced = true,
    std::optional<std::uint32_t> num_links = std::nullopt,
    std::optional<tt::tt_fabric::Topology> topology = std::nullopt,
    const std::optional<MemoryConfig>& memory_config = std::nullopt,
    const std::optional<std::uint32_t>& axis = std::nullopt,
    const std::optional<std::uint32_t>& output_shard_dim = std::nullopt,
    const std::optional<tt::tt_metal::SubDeviceId>& subdevice_id = std::nullopt,
    const std::optional<Tensor>& optional_output_tensor = std::nullopt);

}  // namespace ttnn
