#pragma once

#include <cstdint>
#include <optional>

#include "tt-metalium/experimental/fabric/fabric_edm_types.hpp"
#include "tt-metalium/sub_device_types.hpp"
#include "ttcodegen/release.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Concatenates the shards of the devices along a mesh axis along `dim`, on each of them; without
/// `cluster_axis` those of the whole mesh.
#if TTCODEGEN_TT_METAL >= 8101
Tensor all_gather(const Tensor& input_tensor, std::int32_t dim,
                  std::optional<std::uint32_t> cluster_axis = std::nullopt,
                  const std::optional<MemoryConfig>& memory_config = std::nullopt,
                  const std::optional<Tensor>& persistent_output_tensor = std::nullopt,
                  const std::optional<tt::tt_metal::SubDeviceId>& subdevice_id = std::nullopt,
                  const std::optional<CoreRangeSet>& sub_core_grid = std::nullopt,
                  std::optional<std::uint32_t> num_links = std::nullopt,
                  std::optional<tt::tt_fabric::Topology> topology = std::nullopt,
                  std::optional<std::uint32_t> chunks_per_sync = std::nullopt,
                  std::optional<std::uint32_t> num_workers_per_link = std::nullopt,
                  std::optional<std::uint32_t> num_buffers_per_channel = std::nullopt,
                  bool use_l1_small_for_semaphores = false);
#else
Tensor all_gather(const Tensor& input_tensor, std::int32_t dim,
                  std::optional<std::uint32_t> cluster_axis = std::nullopt,
                  const std::optional<tt::tt_metal::SubDeviceId>& subdevice_id = std::nullopt,
                  const std::optional<MemoryConfig>& memory_config = std::nullopt,
                  const std::optional<Tensor>& optional_output_tensor = std::nullopt,
                  std::optional<std::uint32_t> num_links = std::nullopt,
                  std::optional<tt::tt_fabric::Topology> topology = std::nullopt,
                  std::optional<std::uint32_t> chunks_per_sync = std::nullopt,
                  std::optional<std::uint32_t> num_workers_per_link = std::nullopt,
                  std::optional<std::uint32_t> num_buffers_per_channel = std::nullopt,
                  const std::optional<CoreRangeSet>& sub_core_grid = std::nullopt,
                  bool use_l1_small_for_semaphores = false);
#endif

}  // namespace ttnn
