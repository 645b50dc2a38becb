#include "operations/group_norm_memory.hpp"

#include <algorithm>
#include <cstdint>

namespace ttcodegen::cpu {
namespace {

using tt::tt_metal::BufferType;
using tt::tt_metal::Shape;
using tt::tt_metal::ShardOrientation;
using ttnn::CoreGrid;

/// The number of core columns that share the channels of an interleaved tensor: the most that
/// divide the groups and leave each whole tiles; 0 if there are none.
std::uint32_t channel_columns(std::uint32_t width, std::uint32_t groups, std::uint32_t channels) {
    std::uint32_t columns = std::min(width, groups);
    while (columns > 0 && (channels / columns % kTileSide != 0 || groups % columns != 0)) {
        --columns;
    }
    return columns;
}

/// The division of an interleaved tensor by its program.
struct Division {
    std::uint32_t channels;
    std::uint32_t groups;
    std::uint32_t images;
    std::uint32_t row_tiles;

    std::uint32_t columns(std::uint32_t width) const {
        return channel_columns(width, groups, channels);
    }
    bool fits(const CoreGrid& grid) const {
        const auto width = static_cast<std::uint32_t>(grid.x);
        if (columns(width) == 0) {
            return false;
        }
        const std::uint32_t rows = width / columns(width) * static_cast<std::uint32_t>(grid.y);
        return rows > 0 && row_tiles % rows == 0 && (rows < images || rows % images == 0);
    }
    /// The largest grid that fits, wide before high; grids with all columns first.
    std::optional<CoreGrid> largest(const CoreGrid& device) const {
        std::optional<CoreGrid> partly_used;
        for (std::size_t width = device.x; width > 0; --width) {
            std::size_t height = device.y;
            while (height > 0 && !fits(CoreGrid(width, height))) {
                --height;
            }
            if (height == 0) {
                continue;
            }
            if (width % columns(static_cast<std::uint32_t>(width)) == 0) {
                return CoreGrid(width, height);
            }
            partly_used = partly_used.value_or(CoreGrid(width, height));
        }
        return partly_used;
    }
};

Division division_of_rows(const Tensor& input, int groups) {
    const Shape& shape = input.padded_shape();
    return {.channels = shape[3],
            .groups = static_cast<std::uint32_t>(groups),
            .images = shape[0],
            .row_tiles = shape[0] * shape[1] * shape[2] / kTileSide};
}

CoreGrid cores_of(const Tensor& input, const GroupNormCall& call) {
    if (call.grid) {
        return *call.grid;
    }
    if (input.is_sharded()) {
        TT_FATAL(
            input.shard_spec().has_value(),
            "group_norm: Sharded input must have a shard spec when core_grid is not provided.");
        const auto size = input.shard_spec()->grid.bounding_box().end_coord;
        return CoreGrid(size.x + 1, size.y + 1);
    }
    const auto device = input.device()->compute_with_storage_grid_size();
    const auto grid = division_of_rows(input, call.groups).largest(CoreGrid(device.x, device.y));
    TT_FATAL(grid.has_value(),
             "group_norm: Could not determine a valid DRAM core grid for {} with {} groups.",
             input.padded_shape(), call.groups);
    return *grid;
}

/// The number of cores that share the groups of the call's own mask.
std::uint32_t mask_columns(const Tensor& input, const CoreGrid& grid, int groups) {
    const MemoryConfig& memory = input.memory_config();
    if (memory.buffer_type() != BufferType::L1) {
        return division_of_rows(input, groups).columns(static_cast<std::uint32_t>(grid.x));
    }
    switch (memory.memory_layout()) {
        case TensorMemoryLayout::HEIGHT_SHARDED:
            return 1;
        case TensorMemoryLayout::BLOCK_SHARDED: {
            const bool by_rows = !input.shard_spec() ||
                                 input.shard_spec()->orientation == ShardOrientation::ROW_MAJOR;
            return static_cast<std::uint32_t>(by_rows ? grid.x : grid.y);
        }
        default:
            return static_cast<std::uint32_t>(grid.x * grid.y);
    }
}

void check_mask(const Tensor& input, const CoreGrid& grid, int groups) {
    const std::uint32_t columns = mask_columns(input, grid, groups);
    TT_FATAL(columns > 0 && static_cast<std::uint32_t>(groups) % columns == 0,
             "create_group_norm_input_mask: num_groups ({}) must be divisible by "
             "num_cores_across_channel ({}).",
             groups, columns);
}

void check_shards(const Tensor& input, const GroupNormCall& call, const MemoryConfig& result) {
    if (!input.shard_spec()) {
        return;
    }
    const std::uint32_t group = input.padded_shape()[3] / static_cast<std::uint32_t>(call.groups);
    const std::uint32_t width = input.shard_spec()->shape[1];
    TT_FATAL(width % group == 0,
             "per_core_N ({}) must be divisible by num_datum_row_per_group ({})", width, group);
    if (!call.in_place && result.is_dram()) {
        TT_THROW("Only L1 buffers can have an associated circular buffer!");
    }
}

}  // namespace

MemoryConfig group_norm_memory(const Tensor& input, const GroupNormCall& call,
                               const std::optional<MemoryConfig>& memory_config) {
    TT_FATAL(input.memory_config().memory_layout() != TensorMemoryLayout::WIDTH_SHARDED,
             "Unsupported memory layout: Input tensor cannot be width-sharded.");
    const MemoryConfig result =
        memory_config.value_or(MemoryConfig{TensorMemoryLayout::INTERLEAVED, BufferType::DRAM});
    const CoreGrid grid = cores_of(input, call);
    if (!input.is_sharded() && !division_of_rows(input, call.groups).fits(grid)) {
        TT_THROW(
            "group_norm: Cannot find any valid core grid for the given configuration of {} with "
            "{} groups and core_grid (x={}, y={})",
            input.padded_shape(), call.groups, grid.x, grid.y);
    }
    if (!call.has_mask) {
        check_mask(input, grid, call.groups);
    }
    if (input.is_sharded()) {
        check_shards(input, call, result);
    }
    return result;
}

}  // namespace ttcodegen::cpu
