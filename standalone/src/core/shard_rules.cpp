#include "core/shard_rules.hpp"

#include <algorithm>

#include "device/architecture.hpp"
#include "tt-metalium/math.hpp"

namespace ttcodegen::cpu {

namespace {

using tt::tt_metal::ShardOrientation;
using tt::tt_metal::ShardSpec;

void check_blocks(const ShardSpec& shards, std::size_t down, std::size_t across) {
    const auto grid = shards.grid.bounding_box().grid_size();
    const bool turned = shards.orientation == ShardOrientation::COL_MAJOR;
    const std::size_t rows = turned ? grid.x : grid.y;
    const std::size_t columns = turned ? grid.y : grid.x;
    const char* const order = turned ? "column" : "row";
    TT_FATAL(down <= rows,
             "Number of shards along height {} must not exceed number of rows {} for {} major "
             "orientation!",
             down, rows, order);
    TT_FATAL(across <= columns,
             "Number of shards along width {} must not exceed number of columns {} for {} major "
             "orientation!",
             across, columns, order);
}

}  // namespace

void check_shards(const TensorSpec& spec) {
    const MemoryConfig& memory = spec.memory_config();
    if (!memory.is_sharded() || memory.nd_shard_spec()) {
        return;
    }
    TT_FATAL(memory.shard_spec().has_value(),
             "MemoryConfig must have Shard Spec specified for sharded memory layout");
    const ShardSpec& shards = *memory.shard_spec();
    const auto [shard_height, shard_width] = shards.shape;
    TT_FATAL(shard_height > 0 && shard_width > 0, "Shard shape ({}, {}) has no elements",
             shard_height, shard_width);
    TT_FATAL(spec.layout() != Layout::TILE ||
                 (shard_height % kTileSide == 0 && shard_width % kTileSide == 0),
             "Physical shard shape ({}, {}) must be tile {32, 32} sized!", shard_height,
             shard_width);
    const std::size_t height = spec.physical_shape().height();
    const std::size_t width = spec.physical_shape().width();
    const std::size_t down = tt::div_up(height, shard_height);
    const std::size_t across = tt::div_up(width, shard_width);
    const std::size_t cores = shards.num_cores();
    TT_FATAL(spec.logical_shape().rank() != 1 || spec.layout() == Layout::TILE || shard_height == 1,
             "Shard shape must be 1D for 1D tensor!");
    // Each worker core of the device is a bank of L1.
    const std::size_t banks = device::default_architecture().num_workers();
    TT_FATAL(!memory.is_l1() || down * across <= banks,
             "Expected number of shards {} to be less than or equal to total number of L1 banks {}",
             down * across, banks);
    switch (memory.memory_layout()) {
        case TensorMemoryLayout::HEIGHT_SHARDED:
            TT_FATAL(shard_width == width,
                     "Shard width {} must match physical width {} for height sharded", shard_width,
                     width);
            TT_FATAL(down <= cores,
                     "Number of shards along height {} must not exceed number of cores {}", down,
                     cores);
            return;
        case TensorMemoryLayout::WIDTH_SHARDED:
            TT_FATAL(shard_height == height,
                     "Shard height {} must match physical height {} for width sharded",
                     shard_height, height);
            TT_FATAL(across <= cores,
                     "Number of shards along width {} must not exceed number of cores {}", across,
                     cores);
            return;
        default:
            check_blocks(shards, down, across);
    }
}

void check_whole_rows(const Tensor& input) {
    const MemoryConfig& memory = input.memory_config();
    if (!memory.is_sharded()) {
        return;
    }
    TT_FATAL(memory.shard_spec().has_value(), "The input must have a shard spec");
    TT_FATAL(memory.memory_layout() != TensorMemoryLayout::WIDTH_SHARDED,
             "Input tensor memory layout must not be WIDTH_SHARDED but got {}",
             memory.memory_layout());
    const auto [shard_height, shard_width] = memory.shard_spec()->shape;
    const Shape& padded = input.padded_shape();
    TT_FATAL(shard_width == padded[-1],
             "Input tensor shard width ({}) must equal padded width ({})", shard_width, padded[-1]);
    const std::uint64_t rows = padded.volume() / std::max<std::uint64_t>(1, padded[-1]);
    TT_FATAL(rows % shard_height == 0,
             "Input tensor height ({}) must be divisible by its shards' height ({})", rows,
             shard_height);
}

void check_row_pages(const MemoryConfig& shards, DataType dtype) {
    // The access granularity of L1, on all architectures.
    constexpr std::size_t alignment = 16;
    if (!shards.shard_spec()) {
        return;
    }
    const std::size_t bytes = shards.shard_spec()->shape[1] * stored_size(dtype);
    TT_FATAL(bytes % alignment == 0,
             "Shard page size ({} bytes) must be aligned to {}B for L1 Tensor", bytes, alignment);
}

}  // namespace ttcodegen::cpu
