#pragma once

#include <array>
#include <cstdint>
#include <tt-metalium/buffer_types.hpp>

namespace support {

/// Sharding of a tensor over a rectangle of cores; none if the layout is interleaved.
struct Shards {
    tt::tt_metal::TensorMemoryLayout layout = tt::tt_metal::TensorMemoryLayout::INTERLEAVED;
    /// Height and width of a shard of the tensor as a matrix, in elements.
    std::array<std::uint32_t, 2> shape = {};
    /// Column and row of the first and the last core.
    std::array<std::uint32_t, 4> cores = {};
    tt::tt_metal::ShardOrientation orientation = tt::tt_metal::ShardOrientation::ROW_MAJOR;
};

/// For each axis of a mesh, the dimension of a tensor that is sharded along it; -1 if the tensor is
/// replicated.
using Division = std::array<std::int32_t, 2>;

constexpr Division undivided = {-1, -1};

}  // namespace support
