#pragma once

#include <array>
#include <cstdint>
#include <tt-metalium/buffer_types.hpp>

namespace support {

/// How a tensor is divided among the cores of a rectangle; not at all if the layout is interleaved.
struct Shards {
    tt::tt_metal::TensorMemoryLayout layout = tt::tt_metal::TensorMemoryLayout::INTERLEAVED;
    /// Height and width of each shard of the tensor's rows and columns, in elements.
    std::array<std::uint32_t, 2> shape = {};
    /// Column and row of the first and of the last core.
    std::array<std::uint32_t, 4> cores = {};
    tt::tt_metal::ShardOrientation orientation = tt::tt_metal::ShardOrientation::ROW_MAJOR;
};

/// For each axis of a mesh the dimension of a tensor that is divided among the chips along it, -1
/// if they all have the same.
using Division = std::array<std::int32_t, 2>;

constexpr Division undivided = {-1, -1};

}  // namespace support
