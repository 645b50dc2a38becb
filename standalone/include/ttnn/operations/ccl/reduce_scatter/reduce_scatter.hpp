#pragma once

#include <cstdint>
#include <optional>

#include "tt-metalium/experimental/fabric/fabric_edm_types.hpp"
#include "tt-metalium/sub_device_types.hpp"
#include "ttnn/operations/core/compute_kernel/compute_kernel_config.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Sums the tensors of the devices along a mesh axis and scatters the sum among them along `dim`.
Tensor reduce_scatter(
    const Tensor& input_tensor, std::int32_t dim,
    std::optional<std::uint32_t> cluster_axis = std::nullopt,
    const std::optional<tt::tt_metal::SubDeviceId>& subdevice_id = std::nullopt,
    const std::optional<MemoryConfig>& memory_config = std::nullopt,
    const std::optional<MemoryConfig>& intermediate_memory_config = std::nullopt,
    const std::optional<Tensor>& optional_output_tensor = std::nullopt,
    std::optional<std::uint32_t> num_links = std::nullopt,
    std::optional<tt::tt_fabric::Topology> topology = std::nullopt,
    std::optional<std::uint32_t> chunks_per_sync = std::nullopt,
    std::optional<std::uint32_t> num_workers_per_link = std::nullopt,
    std::optional<std::uint32_t> num_buffers_per_channel = std::nullopt,
    const std::optional<DeviceComputeKernelConfig>& compute_kernel_config = std::nullopt,
    bool use_l1_small_for_semaphores = false);

}  // namespace ttnn
