#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "tt-metalium/experimental/fabric/fabric_edm_types.hpp"
#include "tt-metalium/sub_device_types.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Sends the tokens (batch, sequence, 1, hidden) of the devices along `axis`, in their order, and
/// the experts (batch, sequence, 1, k) of each to the devices of these experts, which are given by
/// `expert_mapping_tensor`, (1, 1, experts, devices). Rows of tokens for other devices are
/// undefined on hardware, and hold those tokens here.
/// @return (1, batch of all, sequence, hidden) and (1, batch of all, sequence, k).
std::array<Tensor, 2> all_to_all_dispatch(
    const Tensor& input_tensor, const Tensor& expert_indices_tensor,
    const Tensor& expert_mapping_tensor, std::optional<std::uint32_t> axis = std::nullopt,
    const std::optional<std::array<Tensor, 2>>& optional_output_tensors = std::nullopt,
    std::optional<std::uint32_t> num_links = std::nullopt,
    std::optional<tt::tt_fabric::Topology> topology = std::nullopt,
    const std::optional<MemoryConfig>& memory_config = std::nullopt,
    const std::optional<tt::tt_metal::SubDeviceId>& subdevice_id = std::nullopt,
    const std::optional<std::uint32_t>& output_concat_dim = std::nullopt);

}  // namespace ttnn
