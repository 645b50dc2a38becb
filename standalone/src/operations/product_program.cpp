#include "operations/product_program.hpp"

#include <algorithm>
#include <utility>

#include "core/l1.hpp"
#include "tt-metalium/work_split.hpp"

namespace ttcodegen::cpu {

namespace {

using namespace ttnn::operations::matmul;
using tt::tt_metal::CoreRange;
using tt::tt_metal::CoreRangeSet;
using tt::tt_metal::ShardOrientation;
using tt::tt_metal::ShardSpec;

/// Bytes of the semaphores of senders that multicast shards.
constexpr std::size_t kShardSignals = 64;

std::size_t in_tiles(std::size_t size) { return div_up(size, kTileSide); }

std::size_t leading(const Shape& shape) {
    std::size_t volume = 1;
    for (std::int32_t dim = 0; dim + 2 < static_cast<std::int32_t>(shape.rank()); ++dim) {
        volume *= shape[dim];
    }
    return volume;
}

CoreRangeSet cores_of(std::size_t count, CoreCoord grid, bool row_wise) {
    TT_FATAL(count <= grid.x * grid.y, "Number of blocks exceeds number of cores: {} > {}", count,
             grid.x * grid.y);
    return tt::tt_metal::num_cores_to_corerangeset(static_cast<std::uint32_t>(count), grid,
                                                   row_wise);
}

template <typename Config>
MemoryConfig with_shards(const ProductCall& call, const Config& config, const CoreRangeSet& cores,
                         ShardOrientation orientation) {
    const std::array<std::uint32_t, 2> shape{
        static_cast<std::uint32_t>(config.per_core_M * kTileSide),
        static_cast<std::uint32_t>(config.per_core_N * kTileSide)};
    return call.memory_config.with_shard_spec(ShardSpec(cores, shape, orientation));
}

/// The memory config of a sharded result.
struct ResultShards {
    const ProductCall& call;
    ProductTiles tiles;

    MemoryConfig operator()(const MatmulMultiCoreProgramConfig& /*config*/) const {
        TT_THROW("Unsupported op for output sharding");
    }
    MemoryConfig operator()(const MatmulMultiCoreReuseProgramConfig& config) const {
        const auto orientation = call.a.is_sharded()   ? call.a.shard_spec()->orientation
                                 : call.b.is_sharded() ? call.b.shard_spec()->orientation
                                                       : ShardOrientation::COL_MAJOR;
        const std::size_t blocks =
            div_up(tiles.rows(), config.per_core_M) * div_up(tiles.width, config.per_core_N);
        return with_shards(call, config,
                           cores_of(blocks, config.compute_with_storage_grid_size,
                                    orientation == ShardOrientation::ROW_MAJOR),
                           orientation);
    }
    MemoryConfig operator()(const MatmulMultiCoreReuseMultiCastProgramConfig& config) const {
        CoreCoord last(div_up(tiles.width, config.per_core_N) - 1,
                       div_up(tiles.rows(), config.per_core_M) - 1);
        if (config.transpose_mcast) {
            std::swap(last.x, last.y);
        }
        return with_shards(
            call, config, CoreRangeSet(CoreRange({0, 0}, last)),
            config.transpose_mcast ? ShardOrientation::COL_MAJOR : ShardOrientation::ROW_MAJOR);
    }
    MemoryConfig operator()(const MatmulMultiCoreReuseMultiCast1DProgramConfig& config) const {
        if (config.gather_in0) {
            return call.memory_config;
        }
        const std::size_t blocks =
            div_up(tiles.divided_rows(config.fuse_batch), config.per_core_M) *
            div_up(tiles.width, config.per_core_N);
        return with_shards(call, config,
                           cores_of(blocks, config.compute_with_storage_grid_size, true),
                           ShardOrientation::ROW_MAJOR);
    }
    MemoryConfig operator()(
        const MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig& config) const {
        const CoreCoord grid = call.a.device()->compute_with_storage_grid_size();
        return with_shards(call, config,
                           cores_of(div_up(tiles.width, config.per_core_N), grid, true),
                           ShardOrientation::ROW_MAJOR);
    }
    MemoryConfig operator()(
        const MatmulMultiCoreReuseMultiCastBatchedDRAMShardedProgramConfig& /*config*/) const {
        return call.memory_config;
    }
};

/// Circular buffer sizes of a program's blocks; kinds with other buffers are not counted.
struct BufferBytes {
    const ProductCall& call;
    ProductTiles tiles;

    template <typename Config>
    std::size_t operator()(const Config& config) const {
        if constexpr (requires { config.compute_with_storage_grid_size; }) {
            return of_blocks(config);
        } else {
            return 0;
        }
    }

    template <typename Config>
    std::size_t of_blocks(const Config& config) const {
        std::size_t height = config.per_core_M;
        std::size_t width = config.per_core_N;
        bool fused = false;
        if constexpr (requires { config.out_block_h; }) {
            height = config.out_block_h;
            width = config.out_block_w;
            fused = config.fuse_batch;
        }
        const std::size_t inner = config.in0_block_w;
        const std::size_t steps = tiles.inner / inner * (fused ? 1 : tiles.batch);
        const std::size_t times = steps > 1 ? 2 : 1;
        std::size_t size = times * inner * width * tile_bytes(call.b.dtype());
        if (!call.a.is_sharded() ||
            call.a.memory_config().memory_layout() != TensorMemoryLayout::HEIGHT_SHARDED) {
            size += times * height * inner * tile_bytes(call.a.dtype());
            size += call.a.is_sharded() ? kShardSignals : 0;
        }
        if (!call.memory_config.is_sharded()) {
            size += height * width * tile_bytes(call.dtype);
        }
        if (call.wide_sums && call.dtype != DataType::FLOAT32) {
            size += height * width * tile_bytes(DataType::FLOAT32);
        }
        return size + (call.bias != nullptr ? width * tile_bytes(call.bias->dtype()) : 0);
    }
};

}  // namespace

ProductTiles::ProductTiles(const ProductCall& call)
    : batch(leading(call.a.padded_shape())), batch_b(leading(call.b.padded_shape())) {
    const Shape& a = call.a.padded_shape();
    const Shape& b = call.b.logical_shape();
    height = in_tiles(a[-2]);
    inner = in_tiles(a[-1]);
    if (call.transpose_a) {
        std::swap(height, inner);
    }
    // A vector is a column.
    width = b.rank() == 1 ? 1 : in_tiles(call.transpose_b ? b[-2] : b[-1]);
}

CoreCoord shard_tiles(const Tensor& tensor) {
    const auto& shape = tensor.shard_spec().value().shape;
    return {shape[1] / kTileSide, shape[0] / kTileSide};
}

MemoryConfig result_memory(const ProductCall& call, const MatmulProgramConfig& config) {
    if (!call.memory_config.is_sharded()) {
        return call.memory_config;
    }
    return std::visit(ResultShards{call, ProductTiles(call)}, config);
}

std::size_t circular_buffer_bytes(const ProductCall& call, const MatmulProgramConfig& config) {
    return std::visit(BufferBytes{call, ProductTiles(call)}, config);
}

}  // namespace ttcodegen::cpu
