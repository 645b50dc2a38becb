#pragma once

#include <cstdint>
#include <optional>

#include "ttnn/distributed/distributed_configs.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Uniformly distributed values in [from, to); seed 0 draws a new sequence at every call.
Tensor rand(
    const ttnn::Shape& shape, MeshDevice& device, DataType dtype = DataType::BFLOAT16,
    Layout layout = Layout::TILE, const MemoryConfig& memory_config = types::DRAM_MEMORY_CONFIG,
    float from = 0.0F, float to = 1.0F, std::uint32_t seed = 0,
    const std::optional<tt::tt_metal::distributed::MeshMapperConfig>& mesh_mapper = std::nullopt);

}  // namespace ttnn
