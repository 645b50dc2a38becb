#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <ranges>

#include "core/l1.hpp"
#include "operations/product_program.hpp"

namespace ttcodegen::cpu {

namespace {

using namespace ttnn::operations::matmul;

constexpr std::size_t kNarrow = 8;
/// Double buffering: blocks of the operands are read during the computation of others.
constexpr std::size_t kBuffers = 2;
constexpr std::size_t kMostWideTiles = 4;

/// Rows and columns of subblocks, in order of preference.
constexpr std::array<std::array<std::size_t, 2>, 20> kSubblocks{{
    {4, 2}, {2, 4}, {8, 1}, {1, 8}, {7, 1}, {1, 7}, {3, 2}, {2, 3}, {6, 1}, {1, 6},
    {5, 1}, {1, 5}, {2, 2}, {4, 1}, {1, 4}, {3, 1}, {1, 3}, {2, 1}, {1, 2}, {1, 1},
}};

struct Block {
    std::size_t height;
    std::size_t width;
};

struct BlockWithInner {
    Block block;
    std::size_t inner;
};

/// The automatic program config of one call.
class Choice {
  public:
    explicit Choice(const ProductCall& call)
        : call_(call), tiles_(call), space_(l1_below_tensors(call.a.device())) {
        left_bytes_ = tile_bytes(call.a.dtype());
        right_bytes_ = tile_bytes(call.b.dtype());
        sum_bytes_ = call.wide_sums
                         ? tile_bytes(DataType::FLOAT32)
                         : std::max(tile_bytes(DataType::BFLOAT16), tile_bytes(call.dtype));
        bias_bytes_ = call.bias != nullptr ? tile_bytes(call.bias->dtype()) : 0;
    }

    MatmulProgramConfig of_interleaved() const;
    MatmulProgramConfig of_sharded() const;
    MatmulProgramConfig on_grid(CoreCoord grid) const;

  private:
    bool fits(Block block, std::size_t inner) const;
    BlockWithInner fitting(Block most, std::size_t inner, bool smaller_inner) const;
    /// The subblock of a block; `whole_rows` for sharded results.
    Block subblock(Block block, bool whole_rows) const;
    /// The same, wide ones first, for a grid given by the caller.
    Block wide_subblock(Block block) const;

    MatmulProgramConfig along_one_side(bool shares_left) const;
    MatmulProgramConfig systolic(CoreCoord grid) const;
    MatmulProgramConfig batched(CoreCoord grid) const;
    MatmulProgramConfig of_rows_or_columns(CoreCoord grid) const;
    MatmulProgramConfig of_blocks(CoreCoord grid) const;
    MatmulProgramConfig of_batched_shards(CoreCoord grid) const;
    MatmulMultiCoreReuseMultiCastProgramConfig in_two_dimensions(CoreCoord grid) const;

    const ProductCall& call_;
    ProductTiles tiles_;
    std::size_t space_;
    std::size_t left_bytes_;
    std::size_t right_bytes_;
    std::size_t sum_bytes_;
    std::size_t bias_bytes_;
};

/// tt-metal's estimate for this choice, which differs from the buffers' final size.
bool Choice::fits(Block block, std::size_t inner) const {
    const std::size_t shard = call_.a.is_sharded() ? shard_tiles(call_.a).x : 0;
    const std::size_t left = block.height * inner * kBuffers * left_bytes_;
    const std::size_t kept = block.height * shard * left_bytes_;
    std::size_t size = left + block.width * inner * kBuffers * right_bytes_ + kept +
                       block.height * block.width * (left_bytes_ + sum_bytes_) +
                       block.width * bias_bytes_;
    if (call_.transpose_a) {
        size += call_.a.is_sharded() ? kept : left;
    }
    return size < space_;
}

std::vector<std::size_t> divisors_below(std::size_t size) {
    std::vector<std::size_t> found{size, 1};
    for (std::size_t part = size / 2; part > 1; --part) {
        if (size % part == 0) {
            found.push_back(part);
        }
    }
    return found;
}

double aspect(Block block) {
    return static_cast<double>(std::max(block.height, block.width)) /
           static_cast<double>(std::min(block.height, block.width));
}

BlockWithInner Choice::fitting(Block most, std::size_t inner, bool smaller_inner) const {
    if (fits(most, inner)) {
        return {most, inner};
    }
    std::map<std::size_t, Block> by_size;
    for (const std::size_t height : divisors_below(most.height)) {
        for (const std::size_t width : divisors_below(most.width)) {
            const Block block{height, width};
            const auto known = by_size.find(height * width);
            if (known == by_size.end() || aspect(known->second) >= aspect(block)) {
                by_size[height * width] = block;
            }
        }
    }
    for (std::size_t k = inner; k >= (smaller_inner ? 1 : inner); --k) {
        if (inner % k != 0) {
            continue;
        }
        for (const auto& [size, block] : std::ranges::reverse_view(by_size)) {
            if (fits(block, k)) {
                return {block, k};
            }
        }
    }
    return {{1, 1}, 1};
}

Block Choice::subblock(Block block, bool whole_rows) const {
    for (const auto& [height, width] : kSubblocks) {
        if (call_.wide_sums && height * width > kMostWideTiles) {
            continue;
        }
        if (whole_rows && (width != block.width || height != 1)) {
            continue;
        }
        if (block.height % height == 0 && block.width % width == 0) {
            return {height, width};
        }
    }
    return {1, 1};
}

Block Choice::wide_subblock(Block block) const {
    for (const auto& [width, height] : kSubblocks) {
        if ((height * width <= kMostWideTiles || !call_.wide_sums) && block.height % height == 0 &&
            block.width % width == 0) {
            return {height, width};
        }
    }
    TT_THROW("Unable to find subblock sizes");
}

bool is_narrow(std::size_t height, std::size_t width, bool in_dram) {
    const std::size_t ratio = height > width ? height / width : width / height;
    return ratio > kNarrow || (in_dram && (height <= 1 || width <= 1));
}

bool interleaved(const MemoryConfig& memory) { return !memory.is_sharded(); }

/// Sets the common fields of configs that divide the result into blocks.
template <typename Config>
void set_blocks(Config& config, CoreCoord grid, std::size_t inner, Block per_core, Block block,
                Block subblock) {
    config.compute_with_storage_grid_size = grid;
    config.in0_block_w = inner;
    config.out_subblock_h = subblock.height;
    config.out_subblock_w = subblock.width;
    if constexpr (requires { config.out_block_h; }) {
        config.out_block_h = block.height;
        config.out_block_w = block.width;
    }
    config.per_core_M = per_core.height;
    config.per_core_N = per_core.width;
}

MatmulProgramConfig Choice::of_interleaved() const {
    constexpr std::size_t most_factor = 16;
    const CoreCoord grid = call_.a.device()->compute_with_storage_grid_size();
    const MemoryConfig& a = call_.a.memory_config();
    const MemoryConfig& b = call_.b.memory_config();
    const MemoryConfig& out = call_.memory_config;
    const bool all_interleaved = interleaved(a) && interleaved(b) && interleaved(out);
    const bool in_dram = a.is_dram() && b.is_dram() && out.is_dram();
    const bool narrow = all_interleaved && is_narrow(tiles_.height, tiles_.width, in_dram);
    const bool is_wide = narrow && tiles_.width > tiles_.height;
    std::size_t factor = most_factor;
    while (factor > 1 && !fits({factor, factor}, 2)) {
        factor /= 2;
    }
    const std::size_t down = div_up(tiles_.height, factor);
    const std::size_t across = div_up(tiles_.width, factor);
    const bool divided = out.is_sharded() || down > 1 || across > 1;
    const std::size_t inner = divided && tiles_.inner % 2 != 0 ? 1 : 2;
    const bool everything_in_dram = in_dram && all_interleaved;
    if (!everything_in_dram && (down * across > grid.x * grid.y || tiles_.inner % inner != 0)) {
        return MatmulMultiCoreProgramConfig{};
    }
    const bool on_cores = !(down == 1 && across == 1) && down <= grid.y && across <= grid.x;
    const bool shares_left =
        is_wide || (!on_cores && out.memory_layout() == TensorMemoryLayout::WIDTH_SHARDED);
    const bool shares_right =
        (narrow && !is_wide) ||
        (!on_cores && out.memory_layout() == TensorMemoryLayout::HEIGHT_SHARDED);
    if (shares_left || (on_cores && down == 1)) {
        return along_one_side(true);
    }
    if (shares_right || (on_cores && across == 1)) {
        return along_one_side(false);
    }
    if (everything_in_dram) {
        return in_two_dimensions(grid);
    }
    if (on_cores || out.memory_layout() == TensorMemoryLayout::BLOCK_SHARDED) {
        MatmulMultiCoreReuseMultiCastProgramConfig config;
        set_blocks(config, grid, inner, {factor, factor}, {factor, factor},
                   {factor == 2 ? std::size_t{4} : std::size_t{1}, 2});
        config.fuse_batch = false;
        return config;
    }
    return MatmulMultiCoreProgramConfig{};
}

MatmulProgramConfig Choice::along_one_side(bool shares_left) const {
    const CoreCoord grid = call_.a.device()->compute_with_storage_grid_size();
    const std::size_t cores = grid.x * grid.y;
    const Block per_core = shares_left ? Block{tiles_.height, div_up(tiles_.width, cores)}
                                       : Block{div_up(tiles_.height, cores), tiles_.width};
    const std::size_t inner = tiles_.inner % 2 == 0 ? 2 : 1;
    const Block block = fitting(per_core, inner, false).block;
    MatmulMultiCoreReuseMultiCast1DProgramConfig config;
    set_blocks(config, grid, inner, per_core, block, subblock(block, false));
    config.fuse_batch = false;
    config.mcast_in0 = shares_left;
    return config;
}

MatmulMultiCoreReuseMultiCastProgramConfig Choice::in_two_dimensions(CoreCoord grid) const {
    const std::size_t inner = tiles_.inner % grid.x == 0 ? tiles_.inner / grid.x : 1;
    const Block per_core{div_up(tiles_.height, grid.y), div_up(tiles_.width, grid.x)};
    const BlockWithInner found = fitting(per_core, inner, true);
    MatmulMultiCoreReuseMultiCastProgramConfig config;
    set_blocks(config, grid, found.inner, per_core, found.block, subblock(found.block, false));
    config.fuse_batch = false;
    return config;
}

MatmulProgramConfig Choice::batched(CoreCoord grid) const {
    Block per_core{tiles_.height, tiles_.width};
    std::size_t inner = 1;
    if (call_.a.is_sharded()) {
        TT_FATAL(call_.a.memory_config().memory_layout() != TensorMemoryLayout::WIDTH_SHARDED,
                 "MatmulMultiCoreReuseProgramConfig: Input A cannot be width sharded");
        const CoreCoord shard = shard_tiles(call_.a);
        per_core.height = shard.y;
        inner = shard.x;
    } else if (call_.b.is_sharded()) {
        TT_FATAL(call_.b.memory_config().memory_layout() != TensorMemoryLayout::WIDTH_SHARDED,
                 "MatmulMultiCoreReuseProgramConfig: Input B cannot be width sharded");
        per_core.width = shard_tiles(call_.b).x;
    } else if (!fits(per_core, inner)) {
        return of_interleaved();
    }
    MatmulMultiCoreReuseProgramConfig config;
    set_blocks(config, grid, inner, per_core, per_core, wide_subblock(per_core));
    return config;
}

MatmulProgramConfig Choice::systolic(CoreCoord grid) const {
    const std::size_t cores = grid.x * grid.y;
    const TensorMemoryLayout kind = call_.a.memory_config().memory_layout();
    const bool is_tall =
        kind == TensorMemoryLayout::HEIGHT_SHARDED ||
        (kind != TensorMemoryLayout::WIDTH_SHARDED && tiles_.rows() > tiles_.width);
    const Block per_core = is_tall ? Block{div_up(tiles_.rows(), cores), tiles_.width}
                                   : Block{tiles_.rows(), div_up(tiles_.width, cores)};
    std::size_t inner = div_up(tiles_.inner, cores);
    while (tiles_.inner % inner != 0) {
        --inner;
    }
    const Block block = fitting(per_core, inner, false).block;
    MatmulMultiCoreReuseMultiCast1DProgramConfig config;
    set_blocks(config, grid, inner, per_core, block, wide_subblock(block));
    config.fuse_batch = true;
    config.mcast_in0 = !is_tall;
    return config;
}

MatmulProgramConfig Choice::on_grid(CoreCoord asked) const {
    constexpr std::size_t first_inner = 4;
    CoreCoord grid = call_.a.device()->compute_with_storage_grid_size();
    if (asked.x <= grid.x && asked.y <= grid.y) {
        grid = asked;
    }
    if (tiles_.batch_b > 1) {
        return batched(grid);
    }
    const TensorMemoryLayout kind = call_.a.memory_config().memory_layout();
    const bool in_blocks = kind == TensorMemoryLayout::BLOCK_SHARDED;
    const bool within_tile = tiles_.inner <= 1 || tiles_.height <= 1 || tiles_.width <= 1;
    if ((is_narrow(tiles_.rows(), tiles_.width, false) || within_tile) && !in_blocks) {
        return systolic(grid);
    }
    if (call_.a.is_sharded() && !in_blocks) {
        return systolic(grid);
    }
    Block per_core{div_up(tiles_.rows(), grid.y), div_up(tiles_.width, grid.x)};
    std::size_t inner = first_inner;
    if (in_blocks) {
        const CoreCoord shard = shard_tiles(call_.a);
        per_core = {shard.y, std::max<std::size_t>(tiles_.width * shard.x / tiles_.inner, 1)};
        inner = std::gcd(shard.x, tiles_.inner);
    }
    while (tiles_.inner % inner != 0) {
        --inner;
    }
    const Block block = fitting(per_core, inner, false).block;
    Block registers = wide_subblock(block);
    if (registers.width != per_core.width) {
        registers.height = 1;
    }
    MatmulMultiCoreReuseMultiCastProgramConfig config;
    set_blocks(config, grid, inner, per_core, block, registers);
    config.transpose_mcast =
        in_blocks && call_.a.shard_spec()->orientation == tt::tt_metal::ShardOrientation::COL_MAJOR;
    return config;
}

MatmulProgramConfig Choice::of_rows_or_columns(CoreCoord grid) const {
    TT_FATAL(
        call_.a.shard_spec()->orientation == tt::tt_metal::ShardOrientation::ROW_MAJOR,
        "Input tensor A must have ROW_MAJOR shard orientation, got: ShardOrientation::COL_MAJOR");
    check_result_kind(call_);
    const CoreCoord shard = shard_tiles(call_.a);
    const bool by_width =
        call_.a.memory_config().memory_layout() == TensorMemoryLayout::WIDTH_SHARDED;
    const Block per_core =
        by_width ? Block{tiles_.rows(), div_up(tiles_.width, call_.a.shard_spec()->num_cores())}
                 : Block{shard.y, tiles_.width};
    const std::size_t inner = by_width ? std::gcd(shard.x, tiles_.inner) : tiles_.inner;
    const Block block = fitting(per_core, inner, false).block;
    MatmulMultiCoreReuseMultiCast1DProgramConfig config;
    set_blocks(config, grid, inner, per_core, block,
               subblock(block, call_.memory_config.is_sharded()));
    config.fuse_batch = true;
    config.mcast_in0 = by_width;
    return config;
}

MatmulProgramConfig Choice::of_blocks(CoreCoord grid) const {
    const bool turned =
        call_.a.shard_spec()->orientation == tt::tt_metal::ShardOrientation::COL_MAJOR;
    check_result_kind(call_);
    const CoreCoord shard = shard_tiles(call_.a);
    const CoreCoord turned_grid = turned ? CoreCoord(grid.y, grid.x) : grid;
    TT_FATAL(
        turned_grid.y == tiles_.rows() / shard.y || turned_grid.y == div_up(tiles_.rows(), shard.y),
        "Num cores along y ({}) must match provided grid size ({})", turned_grid.y,
        tiles_.rows() / shard.y);
    const bool matches = turned_grid.x == tiles_.inner / shard.x;
    TT_FATAL(matches || turned_grid.x == div_up(tiles_.inner, shard.x),
             "Num cores along x ({}) must match provided grid size ({})", turned_grid.x,
             tiles_.inner / shard.x);
    const Block per_core{div_up(tiles_.rows(), turned_grid.y), div_up(tiles_.width, turned_grid.x)};
    const std::size_t inner = matches ? std::gcd(shard.x, tiles_.inner) : 1;
    const Block block = fitting(per_core, inner, false).block;
    MatmulMultiCoreReuseMultiCastProgramConfig config;
    set_blocks(config, grid, inner, per_core, block,
               subblock(block, call_.memory_config.is_sharded()));
    config.transpose_mcast = turned;
    return config;
}

MatmulProgramConfig Choice::of_batched_shards(CoreCoord grid) const {
    TT_FATAL(call_.a.memory_config().memory_layout() != TensorMemoryLayout::WIDTH_SHARDED,
             "Input A memory layout must not be WIDTH_SHARDED, got: {}",
             call_.a.memory_config().memory_layout());
    check_result_kind(call_);
    if (call_.b.is_sharded()) {
        TT_FATAL(call_.a.memory_config().buffer_type() == call_.b.memory_config().buffer_type(),
                 "Input A and B buffer types must match, got A: {} vs B: {}",
                 call_.a.memory_config().buffer_type(), call_.b.memory_config().buffer_type());
        TT_FATAL(call_.a.memory_config().memory_layout() == call_.b.memory_config().memory_layout(),
                 "Input A and B memory layouts must match, got A: {} vs B: {}",
                 call_.a.memory_config().memory_layout(), call_.b.memory_config().memory_layout());
        TT_FATAL(call_.a.shard_spec()->grid == call_.b.shard_spec()->grid,
                 "Input A and B shard grids must match");
        TT_FATAL(call_.a.shard_spec()->orientation == call_.b.shard_spec()->orientation,
                 "Orientation mismatch of input A and B.");
    }
    const CoreCoord shard = shard_tiles(call_.a);
    const Block per_core{shard.y, tiles_.width};
    MatmulMultiCoreReuseProgramConfig config;
    set_blocks(config, grid, shard.x, per_core, per_core,
               subblock(per_core, call_.memory_config.is_sharded()));
    return config;
}

MatmulProgramConfig Choice::of_sharded() const {
    const CoreCoord grid = call_.a.shard_spec()->grid.bounding_box().grid_size();
    if (tiles_.batch_b > 1) {
        return of_batched_shards(grid);
    }
    TT_FATAL(interleaved(call_.b.memory_config()),
             "Input tensor B must have INTERLEAVED memory layout, got: {}",
             call_.b.memory_config().memory_layout());
    const TensorMemoryLayout kind = call_.a.memory_config().memory_layout();
    if (kind != TensorMemoryLayout::BLOCK_SHARDED && (grid.x > 1 || grid.y > 1)) {
        return of_rows_or_columns(grid);
    }
    if (kind == TensorMemoryLayout::BLOCK_SHARDED && grid.x > 1 && grid.y > 1) {
        return of_blocks(grid);
    }
    return on_grid(call_.a.device()->compute_with_storage_grid_size());
}

}  // namespace

MatmulProgramConfig program_of(const ProductCall& call) {
    if (call.config) {
        TT_FATAL(!call.grid, "Cannot use both user core grid/coordinates and a program config");
        return *call.config;
    }
    const Choice choice(call);
    if (call.grid) {
        TT_FATAL(call.grid->x > 0 && call.grid->y > 0, "The compute grid of a matmul has no cores");
        return choice.on_grid(*call.grid);
    }
    return call.a.is_sharded() ? choice.of_sharded() : choice.of_interleaved();
}

}  // namespace ttcodegen::cpu
