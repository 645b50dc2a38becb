#include "operations/head_memory.hpp"

#include <algorithm>
#include <vector>

#include "tt-metalium/math.hpp"
#include "tt-metalium/mesh_device.hpp"
#include "tt-metalium/work_split.hpp"

namespace ttcodegen::cpu {
namespace {

using tt::tt_metal::BufferType;
using tt::tt_metal::CoreCoord;
using tt::tt_metal::CoreRange;
using tt::tt_metal::CoreRangeSet;
using tt::tt_metal::ShardOrientation;
using tt::tt_metal::ShardSpec;

/// The worker grid of a tensor's device.
CoreCoord grid_of(const Tensor& tensor) {
    return tensor.device()->compute_with_storage_grid_size();
}

using Size = std::array<std::uint32_t, 2>;

bool is_kind(const MemoryConfig& memory, TensorMemoryLayout kind) {
    return memory.memory_layout() == kind;
}

/// Merges stacked rows of cores with equal ends to one range each.
std::vector<CoreRange> stacked(const std::vector<CoreRange>& rows) {
    std::vector<CoreRange> ranges;
    for (const CoreRange& row : rows) {
        const bool follows = !ranges.empty() && ranges.back().start_coord.x == row.start_coord.x &&
                             ranges.back().end_coord.x == row.end_coord.x &&
                             ranges.back().end_coord.y + 1 == row.start_coord.y;
        if (follows) {
            ranges.back().end_coord = row.end_coord;
        } else {
            ranges.push_back(row);
        }
    }
    return ranges;
}

/// `count` cores of a grid in row-major order, after the first `skipped`.
CoreRangeSet cores_of(const CoreRangeSet& grid, std::uint32_t skipped, std::uint32_t count) {
    std::vector<CoreCoord> all;
    for (const CoreRange& range : grid.ranges()) {
        for (std::size_t y = range.start_coord.y; y <= range.end_coord.y; ++y) {
            for (std::size_t x = range.start_coord.x; x <= range.end_coord.x; ++x) {
                all.emplace_back(x, y);
            }
        }
    }
    TT_FATAL(skipped + count <= all.size(), "Grid Size is {}. Need at least {} cores for decode",
             all.size(), skipped + count);
    std::vector<CoreRange> rows;
    for (std::size_t i = skipped; i < skipped + count; ++i) {
        const bool follows = !rows.empty() && rows.back().end_coord.y == all[i].y &&
                             rows.back().end_coord.x + 1 == all[i].x;
        if (follows) {
            rows.back().end_coord = all[i];
        } else {
            rows.emplace_back(all[i], all[i]);
        }
    }
    return CoreRangeSet(stacked(rows));
}

MemoryConfig placed(const MemoryConfig& like, const CoreRangeSet& cores, const Size& shape,
                    ShardOrientation orientation = ShardOrientation::ROW_MAJOR) {
    return like.with_shard_spec(ShardSpec(cores, shape, orientation));
}

/// Refuses shards that do not hold whole heads.
void check_whole_heads(const Tensor& input) {
    const auto& memory = input.memory_config();
    const auto& padded = input.padded_shape();
    TT_FATAL(!is_kind(memory, TensorMemoryLayout::WIDTH_SHARDED),
             "Input tensor memory layout must not be WIDTH_SHARDED but got {}",
             memory.memory_layout());
    const auto shape = memory.shard_spec().value().shape;
    TT_FATAL(shape[1] == padded[-1], "Input tensor shard width ({}) must equal padded width ({})",
             shape[1], padded[-1]);
    TT_FATAL(shape[0] % padded[-2] == 0,
             "Input tensor shard height ({}) must be divisible by padded height ({})", shape[0],
             padded[-2]);
    TT_FATAL(padded[1] % (shape[0] / padded[-2]) == 0,
             "Input tensor padded height ({}) must be divisible by shard height / padded height "
             "({} / {})",
             padded[1], shape[0], padded[-2]);
}

void require_interleaved_result(const MemoryConfig& memory) {
    TT_FATAL(!memory.is_sharded(), "Output memory config layout must be INTERLEAVED but got {}",
             memory.memory_layout());
}

void check_created_shards(const Tensor& input, const HeadCounts& heads, bool transposed_keys,
                          const MemoryConfig& memory) {
    const ShardSpec spec = input.memory_config().shard_spec().value();
    const std::uint32_t rows =
        static_cast<std::uint32_t>(input.padded_shape().volume()) / input.padded_shape()[-1];
    TT_FATAL(spec.shape[0] == rows,
             "Shard spec shape[0] ({}) must equal physical volume / padded shape[-1] ({})",
             spec.shape[0], rows);
    TT_FATAL(memory.is_sharded() && !is_kind(memory, TensorMemoryLayout::WIDTH_SHARDED),
             "Output memory config must be sharded and not WIDTH_SHARDED but got memory_layout: {}",
             memory.memory_layout());
    TT_FATAL(spec.orientation == ShardOrientation::ROW_MAJOR,
             "Input tensor shard orientation must be ROW_MAJOR");
    const std::uint32_t cores = spec.num_cores();
    TT_FATAL(heads.queries % cores == 0,
             "Number of Q heads ({}) must be divisible by number of cores ({})", heads.queries,
             cores);
    TT_FATAL(heads.keys % cores == 0,
             "Number of KV heads ({}) must be divisible by number of cores ({})", heads.keys,
             cores);
    const std::uint32_t width = (heads.queries / heads.keys + 2) * heads.width;
    TT_FATAL(spec.shape[1] == width,
             "Shard spec shape[1] ({}) must equal (num_q_heads / num_kv_heads + 2) * head_dim ({})",
             spec.shape[1], width);
    TT_FATAL(!transposed_keys, "Transpose K heads must be false");
}

}  // namespace

MemoryConfig joined_heads_memory(const Tensor& input, const std::optional<MemoryConfig>& asked) {
    const MemoryConfig memory = asked.value_or(input.memory_config());
    if (!input.is_sharded()) {
        require_interleaved_result(memory);
        return memory;
    }
    check_whole_heads(input);
    TT_FATAL(!is_kind(memory, TensorMemoryLayout::HEIGHT_SHARDED),
             "Output memory config layout must not be HEIGHT_SHARDED but got {}",
             memory.memory_layout());
    if (!memory.is_sharded()) {
        return memory;
    }
    const ShardSpec spec = input.memory_config().shard_spec().value();
    const std::uint32_t heads = spec.shape[0] / input.padded_shape()[-2];
    return placed(memory, spec.grid, {spec.shape[0] / heads, spec.shape[1] * heads},
                  spec.orientation);
}

HeadMemory split_heads_memory(const Tensor& input, const HeadCounts& heads, bool transposed_keys,
                              const std::optional<MemoryConfig>& asked) {
    const MemoryConfig memory = asked.value_or(input.memory_config());
    if (!input.is_sharded()) {
        require_interleaved_result(memory);
        return {memory, memory, memory};
    }
    TT_FATAL(is_kind(input.memory_config(), TensorMemoryLayout::BLOCK_SHARDED),
             "Input tensor memory layout must be BLOCK_SHARDED but got {}",
             input.memory_config().memory_layout());
    const ShardSpec spec = input.memory_config().shard_spec().value();
    const CoreRange box = spec.grid.bounding_box();
    const auto columns = static_cast<std::uint32_t>(box.end_coord.x + 1);
    const auto rows = static_cast<std::uint32_t>(box.end_coord.y + 1);
    const bool by_rows = spec.orientation == ShardOrientation::ROW_MAJOR;
    const std::uint32_t across = by_rows ? columns : rows;
    const std::uint32_t down = by_rows ? rows : columns;
    const auto& shape = input.padded_shape();
    TT_FATAL(heads.keys % across == 0,
             "number of groups {} must be a multiple of the number of width cores {}", heads.keys,
             across);
    TT_FATAL(shape[-1] % (across * kTileSide) == 0,
             "Flattened hidden dimension {} must be a multiple of width cores {} * tile width {} "
             "to ensure that each core gets an even amount of tiles",
             shape[-1], across, kTileSide);
    TT_FATAL(is_kind(memory, TensorMemoryLayout::HEIGHT_SHARDED),
             "Output memory config layout must be HEIGHT_SHARDED but got {}",
             memory.memory_layout());
    TT_FATAL(shape[0] == down, "Batch size {} must be equal to num cores {}", shape[0], down);
    const auto cores = static_cast<std::uint32_t>(box.size());
    const auto part = [&](std::uint32_t count, std::uint32_t height, std::uint32_t width) {
        return placed(memory, spec.grid, {shape[0] * count * height / cores, width},
                      spec.orientation);
    };
    const MemoryConfig values = part(heads.keys, shape[-2], heads.width);
    return {part(heads.queries, shape[-2], heads.width),
            transposed_keys ? part(heads.keys, heads.width, shape[-2]) : values, values};
}

HeadMemory created_heads_memory(const Tensor& input, const HeadCounts& heads, bool transposed_keys,
                                const std::optional<MemoryConfig>& asked) {
    const MemoryConfig memory = asked.value_or(input.memory_config());
    if (!input.is_sharded()) {
        require_interleaved_result(memory);
        return {memory, memory, memory};
    }
    check_created_shards(input, heads, transposed_keys, memory);
    const auto on_cores = [&](std::uint32_t count) {
        return placed(memory, tt::tt_metal::num_cores_to_corerangeset(count, grid_of(input), true),
                      {kTileSide, heads.width});
    };
    const MemoryConfig keys = on_cores(heads.keys);
    return {on_cores(heads.queries), keys, keys};
}

HeadMemory decode_heads_memory(const Tensor& input, const HeadCounts& heads, bool overlap,
                               const std::optional<MemoryConfig>& asked) {
    const MemoryConfig& source = input.memory_config();
    TT_FATAL(!source.is_sharded() || is_kind(source, TensorMemoryLayout::WIDTH_SHARDED),
             "Current input memory layout is {}. It must be width sharded", source.memory_layout());
    if (source.is_sharded()) {
        const ShardSpec spec = source.shard_spec().value();
        TT_FATAL(spec.orientation == ShardOrientation::ROW_MAJOR,
                 "Shard orientation must be ROW_MAJOR");
        TT_FATAL(overlap || heads.width % spec.shape[1] == 0,
                 "We don't support partial heads in shards when q and k heads are not overlapping "
                 "coregrid");
    }
    const bool is_placed = asked && asked->shard_spec().has_value();
    const CoreCoord all = grid_of(input);
    const CoreRangeSet grid = is_placed ? asked->shard_spec()->grid
                                        : CoreRangeSet(CoreRange({0, 0}, {all.x - 1, all.y - 1}));
    const MemoryConfig memory =
        is_placed ? *asked
                  : MemoryConfig(TensorMemoryLayout::HEIGHT_SHARDED, BufferType::L1, std::nullopt);
    TT_FATAL(is_kind(memory, TensorMemoryLayout::HEIGHT_SHARDED),
             "Output tensor must be height sharded");
    const std::uint32_t users = input.logical_shape()[2];
    TT_FATAL(overlap || grid.num_cores() >= 2 * users,
             "Input coregrid size is {}. Need cores at least double of num_users for decode when q "
             "and k heads are not overlapping coregrid",
             grid.num_cores());
    const auto at = [&](std::uint32_t skipped, std::uint32_t count) {
        return placed(memory, cores_of(grid, skipped, users),
                      {tt::round_up(count, kTileSide), heads.width});
    };
    return {at(0, heads.queries), at(overlap ? 0 : users, heads.keys), at(0, heads.keys)};
}

void check_separate_keys(const Tensor& queries, const Tensor& keys, std::uint32_t head_width) {
    TT_FATAL(queries.is_sharded() == keys.is_sharded(),
             "Input tensor must be sharded when KV tensor is sharded");
    if (!queries.is_sharded()) {
        return;
    }
    const ShardSpec spec = queries.memory_config().shard_spec().value();
    const ShardSpec other = keys.memory_config().shard_spec().value();
    TT_FATAL(spec.grid == other.grid, "Input tensor and KV tensor must have the same shard grid");
    TT_FATAL(spec.orientation == other.orientation,
             "Input tensor and KV tensor must have the same shard orientation");
    TT_FATAL(other.shape[1] == 2 * head_width,
             "KV tensor shard spec shape[1] ({}) must equal 2 * head_dim ({})", other.shape[1],
             2 * head_width);
}

void check_joined_decode(const Tensor& input) {
    const ShardSpec spec = input.memory_config().shard_spec().value();
    const auto& padded = input.padded_shape();
    TT_FATAL(spec.shape[1] == padded[-1],
             "Shard spec shape[1] ({}) must match input tensor padded shape[-1] ({})",
             spec.shape[1], padded[-1]);
    TT_FATAL(spec.shape[0] == padded[-2],
             "Shard spec shape[0] ({}) must match input tensor padded shape[-2] ({})",
             spec.shape[0], padded[-2]);
    TT_FATAL(spec.num_cores() == padded[1],
             "Input core grid num_cores ({}) must be equal to num users ({})", spec.num_cores(),
             padded[1]);
}

MemoryConfig joined_decode_memory(const Tensor& input, std::uint32_t heads) {
    const std::uint32_t rows = std::max(input.padded_shape()[1], kTileSide);
    const MemoryConfig memory(TensorMemoryLayout::WIDTH_SHARDED, BufferType::L1, std::nullopt);
    return placed(memory, tt::tt_metal::num_cores_to_corerangeset(heads, grid_of(input), true),
                  {rows, input.padded_shape()[-1]});
}

}  // namespace ttcodegen::cpu
