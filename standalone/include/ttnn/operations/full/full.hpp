#pragma once

#include <cstdint>
#include <variant>

#include "ttnn/types.hpp"

namespace ttnn {

/// A device tensor with all elements equal.
ttnn::Tensor moreh_full(const ttnn::SmallVector<std::uint32_t>& shape,
                        std::variant<float, int> fill_value, ttnn::MeshDevice* mesh_device,
                        const DataType& dtype = DataType::BFLOAT16,
                        const Layout& layout = ttnn::TILE_LAYOUT,
                        const MemoryConfig& memory_config = ttnn::DRAM_MEMORY_CONFIG);

}  // namespace ttnn
