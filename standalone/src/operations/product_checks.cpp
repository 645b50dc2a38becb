#include "device/architecture.hpp"
#include "operations/product_program.hpp"

namespace ttcodegen::cpu {

namespace {

using namespace ttnn::operations::matmul;
using tt::tt_metal::ShardOrientation;

/// Tiles of 16 bits in half of the destination register.
constexpr std::size_t kRegisterTiles = 8;

/// Checks of the program config of one call.
class ProgramCheck {
  public:
    explicit ProgramCheck(const ProductCall& call)
        : call_(call),
          tiles_(call),
          a_(call.a.memory_config()),
          b_(call.b.memory_config()),
          out_(call.memory_config) {}

    void operator()(const MatmulMultiCoreProgramConfig& config) const;
    void operator()(const MatmulMultiCoreReuseProgramConfig& config) const;
    void operator()(const MatmulMultiCoreReuseMultiCastProgramConfig& config) const;
    void operator()(const MatmulMultiCoreReuseMultiCast1DProgramConfig& config) const;
    void operator()(const MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig& config) const;
    void operator()(
        const MatmulMultiCoreReuseMultiCastBatchedDRAMShardedProgramConfig& config) const;

  private:
    template <typename Config>
    void check_blocks(const Config& config) const;
    template <typename Config>
    void check_registers(const Config& config) const;
    template <typename Config>
    void check_result_blocks(const Config& config) const;
    void check_orientation(ShardOrientation expected) const;
    void check_in_grid(const Tensor& tensor, CoreCoord grid) const;
    void check_device_grid(CoreCoord grid) const;
    void check_shared_left(const MatmulMultiCoreReuseMultiCast1DProgramConfig& config) const;
    void check_shared_right(const MatmulMultiCoreReuseMultiCast1DProgramConfig& config) const;
    void check_blocks_of_left(const MatmulMultiCoreReuseMultiCastProgramConfig& config) const;
    void check_right(const MatmulMultiCoreReuseMultiCastProgramConfig& config) const;

    const ProductCall& call_;
    ProductTiles tiles_;
    const MemoryConfig& a_;
    const MemoryConfig& b_;
    const MemoryConfig& out_;
};

template <typename Config>
void check_sizes_of(const Config& config) {
    const auto require = [](std::size_t size, const char* name) {
        TT_FATAL(size != 0, "{} is 0, which is not valid", name);
    };
    require(config.in0_block_w, "in0_block_w");
    require(config.out_subblock_h, "out_subblock_h");
    require(config.out_subblock_w, "out_subblock_w");
    if constexpr (requires { config.out_block_h; }) {
        require(config.out_block_h, "out_block_h");
        require(config.out_block_w, "out_block_w");
    }
    require(config.per_core_M, "per_core_M");
    require(config.per_core_N, "per_core_N");
}

template <typename Config>
void ProgramCheck::check_blocks(const Config& config) const {
    TT_FATAL(!config.fuse_batch || tiles_.batch_b == 1,
             "Matmul with fused batch requires input tensors of shapes BCMK*11KN=BCMN or "
             "equivalent. Please change the second input tensor or adjust the program config.");
    TT_FATAL(!config.fuse_batch || !call_.transpose_a || tiles_.batch == 1 || tiles_.height == 1,
             "transpose_a with fuse_batch is not supported when batch dimensions exist and "
             "M_per_batch > 1 (batch_size={}, M_per_batch={})",
             tiles_.batch, tiles_.height);
    const auto divides = [](std::size_t size, std::size_t part) {
        TT_FATAL(size % part == 0, "Error: incompatible values {} and {}", size, part);
    };
    divides(config.per_core_M, config.out_block_h);
    divides(config.per_core_N, config.out_block_w);
    divides(config.out_block_h, config.out_subblock_h);
    divides(config.out_block_w, config.out_subblock_w);
}

template <typename Config>
void ProgramCheck::check_registers(const Config& config) const {
    TT_FATAL(tiles_.inner % config.in0_block_w == 0, "Kt must be divisible by in0_block_w");
    TT_FATAL(config.per_core_M % config.out_subblock_h == 0,
             "per_core_M must be divisible by out_subblock_h");
    TT_FATAL(config.per_core_N % config.out_subblock_w == 0,
             "per_core_N must be divisible by out_subblock_w");
    const std::size_t most = kRegisterTiles * (call_.full_sync ? 2 : 1) / (call_.wide_sums ? 2 : 1);
    TT_FATAL(config.out_subblock_w * config.out_subblock_h <= most,
             "out_subblock_w {} times out_subblock_h {} needs to be at most {} to fit in hardware",
             config.out_subblock_w, config.out_subblock_h, most);
}

template <typename Config>
void ProgramCheck::check_result_blocks(const Config& config) const {
    TT_FATAL(config.out_subblock_w == config.per_core_N || config.out_subblock_h == 1,
             "Error: out_subblock_w must be equal to per_core_N or out_subblock_h must be equal to "
             "1.");
    if constexpr (requires { config.out_block_h; }) {
        TT_FATAL(config.out_block_w == config.per_core_N || config.out_block_h == 1,
                 "Error: out_block_w must be equal to per_core_N or out_block_h must be equal to "
                 "1.");
    }
}

void ProgramCheck::check_orientation(ShardOrientation expected) const {
    TT_FATAL(call_.a.shard_spec()->orientation == expected,
             "Input tensor A must have {} shard orientation",
             expected == ShardOrientation::ROW_MAJOR ? "ROW_MAJOR" : "COL_MAJOR");
}

void ProgramCheck::check_in_grid(const Tensor& tensor, CoreCoord grid) const {
    // Shards in DRAM are counted by banks.
    if (!tensor.is_sharded() || tensor.memory_config().is_dram()) {
        return;
    }
    const auto last = tensor.shard_spec()->grid.bounding_box().end_coord;
    TT_FATAL(last.x < grid.x && last.y < grid.y,
             "Tensor shard spec grid must be within config grid!");
}

void ProgramCheck::check_device_grid(CoreCoord grid) const {
    const CoreCoord device = call_.a.device()->compute_with_storage_grid_size();
    TT_FATAL(grid.x > 0 && grid.y > 0, "The compute grid of a matmul has no cores");
    TT_FATAL(grid.x <= device.x && grid.y <= device.y,
             "The matmul compute grid of {}x{} cores exceeds the device compute grid of {}x{}",
             grid.x, grid.y, device.x, device.y);
}

void ProgramCheck::operator()(const MatmulMultiCoreProgramConfig& /*config*/) const {
    for (const MemoryConfig* memory : {&a_, &b_, &out_}) {
        TT_FATAL(!memory->is_sharded(), "Memory layout must be INTERLEAVED, got: {}",
                 memory->memory_layout());
    }
}

void ProgramCheck::operator()(const MatmulMultiCoreReuseProgramConfig& config) const {
    check_sizes_of(config);
    check_device_grid(config.compute_with_storage_grid_size);
    if (config.per_core_M > tiles_.height) {
        TT_FATAL(config.per_core_M % tiles_.height == 0,
                 "per_core_M, {}, must be a multiple of M, {} if per_core_M > M!",
                 config.per_core_M, tiles_.height);
        TT_FATAL(tiles_.rows() % config.per_core_M == 0,
                 "input a total height, {}, must be divisible by per_core_M, {}!", tiles_.rows(),
                 config.per_core_M);
    } else {
        TT_FATAL(tiles_.height % config.per_core_M == 0,
                 "per_core_M, {}, must divide M, {}, if per_core_M < M!", config.per_core_M,
                 tiles_.height);
    }
    TT_FATAL(tiles_.width == config.per_core_N, "Error: N, {}, is not equal to per_core_N, {}",
             tiles_.width, config.per_core_N);
    if (call_.a.is_sharded()) {
        TT_FATAL(a_.memory_layout() != TensorMemoryLayout::WIDTH_SHARDED,
                 "Error: memory layout, {}, is not width sharded", a_.memory_layout());
        const CoreCoord shard = shard_tiles(call_.a);
        TT_FATAL(tiles_.inner == shard.x && shard.x == config.in0_block_w,
                 "Error: K, {}, needs to be equal to the shard's width, {}, and to in0_block_w, {}",
                 tiles_.inner, shard.x, config.in0_block_w);
        TT_FATAL(config.per_core_M == shard.y, "Error: {} needs to equal {}", config.per_core_M,
                 shard.y);
        if (call_.b.is_sharded()) {
            TT_FATAL(a_.memory_layout() == b_.memory_layout() &&
                         a_.buffer_type() == b_.buffer_type() &&
                         call_.a.shard_spec()->grid == call_.b.shard_spec()->grid &&
                         call_.a.shard_spec()->orientation == call_.b.shard_spec()->orientation,
                     "Input tensors A and B must have matching memory layouts, grids and "
                     "orientations");
        }
        check_result_kind(call_);
    }
    TT_FATAL(tiles_.batch == 1 || tiles_.batch_b > 1,
             "Batch broadcasting is not supported for the chosen program config");
    TT_FATAL(tiles_.batch == 1 || tiles_.height % config.out_subblock_h == 0,
             "out_subblock_h ({}) needs to divide M ({}) evenly and does not. Please update your "
             "program config.",
             config.out_subblock_h, tiles_.height);
    if (call_.b.is_sharded()) {
        TT_FATAL(config.per_core_M % tiles_.height == 0,
                 "per_core_M must be a multiple of M if input b is sharded!");
        TT_FATAL(b_.memory_layout() != TensorMemoryLayout::WIDTH_SHARDED,
                 "Input B memory layout must not be WIDTH_SHARDED, got: {}", b_.memory_layout());
        const CoreCoord shard = shard_tiles(call_.b);
        TT_FATAL(shard.x == tiles_.width, "Input B shard shape[1] ({}) must equal padded N ({})",
                 shard.x * kTileSide, tiles_.width * kTileSide);
        TT_FATAL(shard.y % tiles_.inner == 0, "Input B shard shape[0] ({}) must be divisible by {}",
                 shard.y * kTileSide, tiles_.inner * kTileSide);
    }
    if (out_.is_sharded()) {
        TT_FATAL(out_.memory_layout() != TensorMemoryLayout::WIDTH_SHARDED,
                 "Output memory layout must not be WIDTH_SHARDED, got: {}", out_.memory_layout());
        check_result_blocks(config);
    }
    check_registers(config);
}

void ProgramCheck::check_blocks_of_left(
    const MatmulMultiCoreReuseMultiCastProgramConfig& config) const {
    TT_FATAL(config.fuse_batch, "Batch fusion is required when input A is sharded");
    const CoreCoord shard = shard_tiles(call_.a);
    const TensorMemoryLayout kind = a_.memory_layout();
    TT_FATAL(kind != TensorMemoryLayout::WIDTH_SHARDED, "Unsupported memory layout {}.", kind);
    if (kind == TensorMemoryLayout::BLOCK_SHARDED) {
        check_orientation(config.transpose_mcast ? ShardOrientation::COL_MAJOR
                                                 : ShardOrientation::ROW_MAJOR);
        check_result_kind(call_);
    } else {
        TT_FATAL(!config.transpose_mcast, "Transpose MCAST not supported with {} layout", kind);
        TT_FATAL(tiles_.inner == config.in0_block_w, "K ({}) must equal in0_block_w ({})",
                 tiles_.inner, config.in0_block_w);
        const auto box = call_.a.shard_spec()->grid.bounding_box();
        TT_FATAL(box.start_coord.x == box.end_coord.x,
                 "Grid bounding box x coordinates must match, got start: {} vs end: {}",
                 box.start_coord.x, box.end_coord.x);
    }
    TT_FATAL(config.per_core_M == shard.y,
             "per_core_M ({}) must equal shard_shape[0] / in0_tile.get_height() ({})",
             config.per_core_M, shard.y);
    TT_FATAL(shard.x % config.in0_block_w == 0,
             "shard_shape[1] / in0_tile.get_width() ({}) must be divisible by in0_block_w ({})",
             shard.x, config.in0_block_w);
}

void ProgramCheck::check_right(const MatmulMultiCoreReuseMultiCastProgramConfig& config) const {
    TT_FATAL(!config.transpose_mcast, "Transpose MCAST not supported when input B is sharded");
    const TensorMemoryLayout kind = b_.memory_layout();
    TT_FATAL(kind != TensorMemoryLayout::BLOCK_SHARDED,
             "Input B memory layout must be WIDTH_SHARDED or HEIGHT_SHARDED, got: {}", kind);
    if (kind == TensorMemoryLayout::HEIGHT_SHARDED) {
        TT_FATAL(b_.is_dram(), "HEIGHT_SHARDED input B is only supported in DRAM, got: {}",
                 b_.buffer_type());
        TT_FATAL(!config.fuse_batch,
                 "HEIGHT_SHARDED input B requires fuse_batch=false for batched matmul");
    }
    if (!b_.is_dram()) {
        TT_FATAL(!call_.a.is_sharded() || a_.memory_layout() == TensorMemoryLayout::HEIGHT_SHARDED,
                 "Error - non-DRAM width sharded input B requires input A to be interleaved or "
                 "height sharded, rather than {}",
                 a_.memory_layout());
        TT_FATAL(config.per_core_N == shard_tiles(call_.b).x,
                 "per_core_N ({}) must equal the shard's width of input tensor B in tiles ({})",
                 config.per_core_N, shard_tiles(call_.b).x);
    }
    const auto box = call_.b.shard_spec()->grid.bounding_box();
    TT_FATAL(kind != TensorMemoryLayout::WIDTH_SHARDED || box.start_coord.y == box.end_coord.y,
             "Width-sharded input tensor B grid bounding box must have equal start and end y "
             "coordinates, got start: {} vs end: {}",
             box.start_coord.y, box.end_coord.y);
}

void ProgramCheck::operator()(const MatmulMultiCoreReuseMultiCastProgramConfig& config) const {
    check_sizes_of(config);
    check_blocks(config);
    const CoreCoord grid = config.compute_with_storage_grid_size;
    check_device_grid(grid);
    check_in_grid(call_.a, grid);
    check_in_grid(call_.b, grid);
    if (call_.a.is_sharded()) {
        check_blocks_of_left(config);
    }
    if (call_.b.is_sharded()) {
        check_right(config);
    }
    if (out_.is_sharded()) {
        TT_FATAL(out_.memory_layout() == TensorMemoryLayout::BLOCK_SHARDED ||
                     (a_.memory_layout() == TensorMemoryLayout::HEIGHT_SHARDED &&
                      out_.memory_layout() == TensorMemoryLayout::HEIGHT_SHARDED),
                 "Output memory layout must be BLOCK_SHARDED, got: {}", out_.memory_layout());
        TT_FATAL(config.fuse_batch || tiles_.batch == 1,
                 "Block-sharded output is incompatible with batch > 1 (B={}). Use fuse_batch=True.",
                 tiles_.batch);
        check_result_blocks(config);
    }
    check_registers(config);
    const std::size_t down = div_up(tiles_.divided_rows(config.fuse_batch), config.per_core_M);
    const std::size_t across = div_up(tiles_.width, config.per_core_N);
    const CoreCoord cores =
        config.transpose_mcast ? CoreCoord(grid.y, grid.x) : CoreCoord(grid.x, grid.y);
    TT_FATAL(across <= cores.x,
             "Num output blocks along x ({}) must be smaller than or equal to the number of "
             "columns in compute grid ({})!",
             across, cores.x);
    TT_FATAL(down <= cores.y,
             "Num output blocks along y ({}) must be smaller than or equal to the number of rows "
             "in compute grid ({})!",
             down, cores.y);
}

void ProgramCheck::check_shared_left(
    const MatmulMultiCoreReuseMultiCast1DProgramConfig& config) const {
    const std::size_t rows = tiles_.divided_rows(config.fuse_batch);
    if (call_.a.is_sharded()) {
        TT_FATAL(config.fuse_batch, "Error: Batch fusion must be enabled.");
        TT_FATAL(a_.memory_layout() == TensorMemoryLayout::WIDTH_SHARDED,
                 "Error: input_tensor_a must be width sharded. Provided tensor memory layout: {}",
                 a_.memory_layout());
        check_result_kind(call_);
        check_orientation(ShardOrientation::ROW_MAJOR);
        const CoreCoord shard = shard_tiles(call_.a);
        TT_FATAL(rows == config.per_core_M && config.per_core_M == shard.y,
                 "Error: M ({}) must be equal to per_core_M ({}) and to the shard's height ({}).",
                 rows, config.per_core_M, shard.y);
        TT_FATAL(shard.x % config.in0_block_w == 0,
                 "Error: shard_shape[1] / in0_tile.get_width() ({}) must be divisible by "
                 "in0_block_w ({}).",
                 shard.x, config.in0_block_w);
    }
    if (out_.is_sharded()) {
        TT_FATAL(out_.memory_layout() == TensorMemoryLayout::WIDTH_SHARDED,
                 "Error: Output memory layout must be WIDTH_SHARDED or BLOCK_SHARDED on a 1-row "
                 "grid. Provided tensor memory layout: {}",
                 out_.memory_layout());
        TT_FATAL(rows == config.per_core_M, "Error: M {} must be equal to per_core_M {}.", rows,
                 config.per_core_M);
        check_result_blocks(config);
    }
    if (call_.b.is_sharded() && !b_.is_dram()) {
        TT_FATAL(b_.memory_layout() == TensorMemoryLayout::WIDTH_SHARDED,
                 "Operand B can only be interleaved or L1 width sharded.");
        TT_FATAL(config.per_core_N == shard_tiles(call_.b).x, "Shard width must match per core N.");
        TT_FATAL(call_.bias == nullptr ||
                     (call_.bias->shard_spec() &&
                      call_.bias->shard_spec()->shape[1] == call_.b.shard_spec()->shape[1]),
                 "Bias shard spec width must match second inputs shard spec width.");
    }
}

void ProgramCheck::check_shared_right(
    const MatmulMultiCoreReuseMultiCast1DProgramConfig& config) const {
    const std::size_t rows = tiles_.divided_rows(config.fuse_batch);
    if (call_.a.is_sharded()) {
        TT_FATAL(config.fuse_batch, "Error: Batch fusion must be enabled.");
        TT_FATAL(a_.memory_layout() == TensorMemoryLayout::HEIGHT_SHARDED,
                 "Error: input_tensor_a must be height sharded.");
        check_result_kind(call_);
        check_orientation(ShardOrientation::ROW_MAJOR);
        const CoreCoord shard = shard_tiles(call_.a);
        TT_FATAL(div_up(rows, config.per_core_M) <= call_.a.shard_spec()->num_cores(),
                 "Error: M must be divisible by per_core_M.");
        TT_FATAL(config.per_core_M == shard.y,
                 "Error: per_core_M must be equal to shard_shape[0] / in0_tile.get_height().");
    }
    if (out_.is_sharded()) {
        TT_FATAL(out_.memory_layout() == TensorMemoryLayout::HEIGHT_SHARDED,
                 "Error: Output memory layout must be HEIGHT_SHARDED or BLOCK_SHARDED on a "
                 "1-column grid.");
        TT_FATAL(tiles_.width == config.per_core_N, "Error: N must be equal to per_core_N.");
        check_result_blocks(config);
    }
    TT_FATAL(!call_.b.is_sharded(), "Error: Operand B must be interleaved.");
}

void ProgramCheck::operator()(const MatmulMultiCoreReuseMultiCast1DProgramConfig& config) const {
    check_sizes_of(config);
    check_blocks(config);
    const CoreCoord grid = config.compute_with_storage_grid_size;
    check_device_grid(grid);
    TT_FATAL(!(config.mcast_in0 && config.gather_in0),
             "Matmul1D does not support mcast_in0 and gather_in0 at the same time.");
    if (config.gather_in0) {
        TT_FATAL(config.num_global_cb_receivers > 0,
                 "Num global CB receivers must be greater than 0.");
        TT_FATAL(a_.memory_layout() == TensorMemoryLayout::WIDTH_SHARDED,
                 "Input tensor A must be width sharded when using gather_in0.");
    } else {
        check_in_grid(call_.a, grid);
        check_in_grid(call_.b, grid);
    }
    TT_FATAL(!config.untilize_out || call_.dtype == DataType::BFLOAT16 ||
                 call_.dtype == DataType::FLOAT32,
             "Unsupported data type: {}", call_.dtype);
    if (config.mcast_in0 || config.gather_in0) {
        check_shared_left(config);
    } else {
        check_shared_right(config);
    }
    check_registers(config);
    const std::size_t down = div_up(tiles_.divided_rows(config.fuse_batch), config.per_core_M);
    const std::size_t blocks = down * div_up(tiles_.width, config.per_core_N);
    TT_FATAL(blocks <= grid.x * grid.y,
             "Number of blocks exceeds number of cores: {} blocks > {} cores", blocks,
             grid.x * grid.y);
}

void ProgramCheck::operator()(
    const MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig& config) const {
    TT_FATAL(call_.a.is_sharded(),
             "Input tensor A must be sharded for DRAM sharded program config");
    TT_FATAL(out_.is_sharded(),
             "Output memory config must be sharded for DRAM sharded program config");
    TT_FATAL(a_.memory_layout() == TensorMemoryLayout::WIDTH_SHARDED,
             "Input A memory layout must be WIDTH_SHARDED, got: {}", a_.memory_layout());
    check_result_kind(call_);
    check_orientation(ShardOrientation::ROW_MAJOR);
    TT_FATAL(config.in0_block_w > 0 && config.per_core_M > 0 && config.per_core_N > 0,
             "in0_block_w, per_core_M and per_core_N must be greater than 0");
    TT_FATAL(tiles_.height == config.per_core_M, "M ({}) must equal per_core_M ({})", tiles_.height,
             config.per_core_M);
    TT_FATAL(tiles_.height == 1, "currently only support in0 tensor height of tile height");
    const CoreCoord shard = shard_tiles(call_.a);
    TT_FATAL(config.per_core_M == shard.y,
             "per_core_M ({}) must equal shard_shape[0] / in0_tile.get_height() ({})",
             config.per_core_M, shard.y);
    TT_FATAL(tiles_.inner % config.in0_block_w == 0, "K ({}) must be divisible by in0_block_w ({})",
             tiles_.inner, config.in0_block_w);
    TT_FATAL(shard.x % config.in0_block_w == 0,
             "shard_shape[1] / in0_tile.get_width() ({}) must be divisible by in0_block_w ({})",
             shard.x, config.in0_block_w);
    TT_FATAL(tiles_.inner % shard.x == 0,
             "in DRAM sharded Matmul we don't have support for un-even sharding currently. K: {}, "
             "per_core_K: {}.",
             tiles_.inner, shard.x);
    TT_FATAL(b_.memory_layout() == TensorMemoryLayout::WIDTH_SHARDED,
             "Input B memory layout must be WIDTH_SHARDED, got: {}", b_.memory_layout());
    const std::size_t workers = config.num_workers_per_dram_bank;
    const std::size_t most = device::architecture(tt::ARCH::BLACKHOLE).readers_of_bank;
    TT_FATAL(workers >= 1 && workers <= most,
             "num_workers_per_dram_bank must be in [1, {}], got {}", most, workers);
    TT_FATAL(workers <= device::default_architecture().readers_of_bank,
             "num_workers_per_dram_bank > 1 is currently supported only on Blackhole");
    const std::size_t columns = shard_tiles(call_.b).x;
    TT_FATAL(columns % workers == 0,
             "DRAM-sharded matmul weight shard width {} tiles per bank must be divisible by "
             "workers_per_bank {}",
             columns, workers);
}

void ProgramCheck::operator()(
    const MatmulMultiCoreReuseMultiCastBatchedDRAMShardedProgramConfig& config) const {
    TT_FATAL(call_.a.is_sharded() && out_.is_sharded(),
             "Input A and output must be sharded for batch-sharded DRAM matmul");
    for (const MemoryConfig* memory : {&a_, &b_}) {
        TT_FATAL(memory->memory_layout() == TensorMemoryLayout::HEIGHT_SHARDED,
                 "Memory layout must be HEIGHT_SHARDED for batch-sharded DRAM matmul, got: {}",
                 memory->memory_layout());
    }
    check_result_kind(call_);
    check_orientation(ShardOrientation::ROW_MAJOR);
    TT_FATAL(config.in0_block_w > 0 && tiles_.inner % config.in0_block_w == 0,
             "N dimension ({}) must be divisible by in0_block_w ({})", tiles_.inner,
             config.in0_block_w);
}

}  // namespace

void check_result_kind(const ProductCall& call) {
    const MemoryConfig& out = call.memory_config;
    if (!out.is_sharded()) {
        return;
    }
    const MemoryConfig& a = call.a.memory_config();
    TT_FATAL(a.buffer_type() == out.buffer_type(),
             "Input A and output buffer types must match, got input: {} vs output: {}",
             a.buffer_type(), out.buffer_type());
    TT_FATAL(a.memory_layout() == out.memory_layout(),
             "Input A and output memory layouts must match, got input: {} vs output: {}",
             a.memory_layout(), out.memory_layout());
}

void check_sizes(const MatmulMultiCoreReuseMultiCast1DProgramConfig& config) {
    check_sizes_of(config);
}

void check_program(const ProductCall& call, const MatmulProgramConfig& config) {
    std::visit(ProgramCheck(call), config);
}

}  // namespace ttcodegen::cpu
