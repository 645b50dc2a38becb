#pragma once

#include <array>
#include <cstdint>

#include "tt-metalium/buffer_types.hpp"
#include "tt-metalium/core_coord.hpp"

namespace tt::tt_metal {

/// Which cores hold a sharded tensor, and the height and width of one shard in elements.
struct ShardSpec {
    CoreRangeSet grid;
    std::array<std::uint32_t, 2> shape;
    ShardOrientation orientation = ShardOrientation::ROW_MAJOR;

    ShardSpec(const CoreRangeSet& core_sets_, const std::array<std::uint32_t, 2>& shard_shape_,
              const ShardOrientation& shard_orientation_ = ShardOrientation::ROW_MAJOR)
        : grid(core_sets_), shape(shard_shape_), orientation(shard_orientation_) {}

    std::uint32_t num_cores() const { return grid.num_cores(); }
    std::uint32_t numel() const { return shape[0] * shape[1]; }

    bool operator==(const ShardSpec& other) const;
    bool operator!=(const ShardSpec& other) const;
};

}  // namespace tt::tt_metal
