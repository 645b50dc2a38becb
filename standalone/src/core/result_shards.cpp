#include "core/result_shards.hpp"

#include <algorithm>

#include "tt-metalium/math.hpp"

namespace ttcodegen::cpu {

namespace {

using tt::tt_metal::CoreCoord;
using tt::tt_metal::CoreRange;
using tt::tt_metal::CoreRangeSet;
using tt::tt_metal::ShardOrientation;
using tt::tt_metal::ShardSpec;

struct Extent {
    std::size_t height;
    std::size_t width;
};

/// Rows and columns of a tensor in interleaved memory, including the padding of tiles.
Extent extent_of(const Shape& shape, Layout layout) {
    const TensorSpec spec = make_spec(shape, DataType::BFLOAT16, layout, MemoryConfig{});
    return {spec.physical_shape().height(), spec.physical_shape().width()};
}

std::uint32_t part(std::size_t size, std::size_t parts, std::size_t unit) {
    return static_cast<std::uint32_t>(std::max(tt::round_up(tt::div_up(size, parts), unit), unit));
}

bool has_shards(const Tensor& tensor) { return tensor.memory_config().shard_spec().has_value(); }

MemoryConfig spread_over_all(const MemoryConfig& kind, const Tensor& tensor, const Shape& shape,
                             Layout layout) {
    const CoreCoord grid = device_of(tensor)->compute_with_storage_grid_size();
    const ShardSpec all(CoreRangeSet(CoreRange({0, 0}, {grid.x - 1, grid.y - 1})), {1, 1});
    return spread_over(kind.with_shard_spec(all), kind.memory_layout(), shape, layout);
}

}  // namespace

bool is_bare(const std::optional<MemoryConfig>& asked) {
    return asked && asked->is_sharded() && !asked->shard_spec() && !asked->nd_shard_spec();
}

MemoryConfig spread_over(const MemoryConfig& like, TensorMemoryLayout kind, const Shape& shape,
                         Layout layout) {
    ShardSpec shards = like.shard_spec().value();
    const auto [height, width] = extent_of(shape, layout);
    const std::size_t unit = layout == Layout::TILE ? kTileSide : 1;
    const std::size_t cores = shards.num_cores();
    if (kind == TensorMemoryLayout::HEIGHT_SHARDED) {
        shards.shape = {part(height, cores, unit), static_cast<std::uint32_t>(width)};
    } else if (kind == TensorMemoryLayout::WIDTH_SHARDED) {
        shards.shape = {static_cast<std::uint32_t>(height), part(width, cores, unit)};
    } else {
        CoreCoord grid = shards.grid.bounding_box().grid_size();
        if (shards.orientation == ShardOrientation::COL_MAJOR) {
            std::swap(grid.x, grid.y);
        }
        shards.shape = {part(height, grid.y, unit), part(width, grid.x, unit)};
    }
    return MemoryConfig(kind, like.buffer_type(), shards);
}

MemoryConfig unary_memory(const Tensor& input, const std::optional<MemoryConfig>& asked) {
    if (!is_bare(asked)) {
        return output_memory_config(input, asked);
    }
    if (has_shards(input)) {
        return asked->with_shard_spec(input.memory_config().shard_spec());
    }
    return spread_over_all(*asked, input, input.logical_shape(), input.layout());
}

MemoryConfig elementwise_memory(std::span<const Tensor* const> operands, const Shape& shape,
                                Layout layout, const std::optional<MemoryConfig>& asked) {
    if (asked && !is_bare(asked)) {
        return *asked;
    }
    const Tensor& first = *operands.front();
    const Tensor* widest = nullptr;
    std::size_t most = 0;
    // A sharding without shard spec is ignored if an operand has one: the first one's is used.
    if (is_bare(asked) && has_shards(first)) {
        operands = operands.first(1);
    }
    for (const Tensor* operand : operands) {
        if (has_shards(*operand) && operand->memory_config().shard_spec()->num_cores() > most) {
            most = operand->memory_config().shard_spec()->num_cores();
            widest = operand;
        }
    }
    if (widest == nullptr) {
        return is_bare(asked) ? spread_over_all(*asked, first, shape, layout)
                              : first.memory_config();
    }
    if (!first.memory_config().is_sharded() && first.memory_config().is_l1() && !asked) {
        return first.memory_config();
    }
    const MemoryConfig& memory = widest->memory_config();
    return widest->logical_shape() == shape
               ? memory
               : spread_over(memory, memory.memory_layout(), shape, layout);
}

bool is_sharded_in_dram(const Tensor& tensor) {
    return on_device(tensor) && tensor.is_sharded() && tensor.memory_config().is_dram();
}

MemoryConfig reduced_memory(const Tensor& input, bool rows, bool columns,
                            const std::optional<MemoryConfig>& asked) {
    MemoryConfig memory = output_memory_config(input, asked);
    if (is_sharded_in_dram(input)) {
        TT_FATAL(input.layout() == Layout::TILE,
                 "Only L1 buffers can have an associated circular buffer!");
        TT_FATAL(!rows && !columns,
                 "reduce: sharded input memory layout {} is only supported with L1 buffers, got "
                 "buffer type {}",
                 input.memory_config().memory_layout(), input.memory_config().buffer_type());
    }
    if (!memory.is_sharded()) {
        return memory;
    }
    if (!memory.shard_spec() && has_shards(input)) {
        memory = memory.with_shard_spec(input.memory_config().shard_spec());
    }
    TT_FATAL(memory.shard_spec().has_value(),
             "Sharded memory layout {} requires either nd_shard_spec or shard_spec to be set on "
             "the output memory config",
             memory.memory_layout());
    TT_FATAL(!memory.is_dram() || (!rows && !columns),
             "reduce: sharded output memory layout {} is only supported with L1 buffers, got "
             "buffer type {}",
             memory.memory_layout(), memory.buffer_type());
    const bool kept = memory == input.memory_config() && input.layout() == Layout::TILE;
    MemoryConfig result =
        kept ? memory
             : spread_over(memory, memory.memory_layout(), input.logical_shape(), Layout::TILE);
    ShardSpec shards = *result.shard_spec();
    if (columns) {
        shards.shape[1] = kTileSide;
    }
    TensorMemoryLayout kind = result.memory_layout();
    if (rows) {
        shards.shape[0] = kTileSide;
        if (kind == TensorMemoryLayout::HEIGHT_SHARDED) {
            kind = TensorMemoryLayout::WIDTH_SHARDED;
        }
    }
    return MemoryConfig(kind, result.buffer_type(), shards);
}

MemoryConfig moved_memory(const Tensor& input, const Shape& shape,
                          const std::optional<MemoryConfig>& asked, bool turned) {
    const MemoryConfig& own = input.memory_config();
    const bool ignored = is_bare(asked);
    if (!own.is_sharded() || !own.shard_spec() || (asked && !ignored)) {
        return ignored ? own : output_memory_config(input, asked);
    }
    TensorMemoryLayout kind = own.memory_layout();
    const bool is_matrix =
        shape.rank() < 3 || shape.volume() == std::uint64_t{shape[-1]} * shape[-2];
    if (turned && is_matrix && kind == TensorMemoryLayout::HEIGHT_SHARDED) {
        kind = TensorMemoryLayout::WIDTH_SHARDED;
    }
    return spread_over(own, kind, shape, input.layout());
}

void require_interleaved(const Tensor& input, const std::optional<MemoryConfig>& asked) {
    TT_FATAL(!input.is_sharded(),
             "Only INTERLEAVED memory layout is supported for inputs, got {}: Sharded "
             "implementation not supported yet",
             input.memory_config().memory_layout());
    TT_FATAL(!asked || !asked->is_sharded(), "Sharded implementation not supported yet, got {}",
             asked->memory_layout());
}

MemoryConfig tilized_memory(const Tensor& input, const std::optional<MemoryConfig>& asked) {
    const MemoryConfig& own = input.memory_config();
    const bool by_height = asked && own.is_l1() &&
                           own.memory_layout() == TensorMemoryLayout::HEIGHT_SHARDED &&
                           asked->memory_layout() == TensorMemoryLayout::HEIGHT_SHARDED;
    return by_height ? own : output_memory_config(input, asked);
}

}  // namespace ttcodegen::cpu
