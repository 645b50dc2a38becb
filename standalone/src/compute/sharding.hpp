#pragma once

#include <cstdint>

#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

/// L1 memory of rows x columns elements distributed over the 8x8 worker cores: by rows, by columns
/// or by blocks. `unit` is the minimum height of a shard, 32 for tiles.
///
/// ttnn chooses its shards by rules of its own; programs read them off the result.
MemoryConfig sharded_l1(TensorMemoryLayout scheme, std::uint32_t rows, std::uint32_t columns,
                        std::uint32_t unit);

/// Refuses windowed operations on a device that has no room for their configuration.
void require_l1_small(const MeshDevice* device);

}  // namespace ttcodegen::cpu
