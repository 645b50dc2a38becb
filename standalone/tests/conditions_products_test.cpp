// Matmuls with program configs that violate one condition of tt-metal 0.70.1 each.

#include "conditions_testing.hpp"
#include "ttnn/operations/matmul/matmul.hpp"

using namespace conditions_testing;

namespace {

using namespace ttnn::operations::matmul;

using Blocks = MatmulMultiCoreReuseMultiCastProgramConfig;
using Line = MatmulMultiCoreReuseMultiCast1DProgramConfig;
using Reuse = MatmulMultiCoreReuseProgramConfig;
using FromDRAM = MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig;

/// A matmul with a program config; violations are changes of a valid one.
template <typename Config>
struct Product {
    Tensor left;
    Tensor right;
    Config config;
    MemoryConfig memory = kDRAM;

    Tensor operator()() const {
        return ttnn::matmul(left, right, false, false, memory, std::nullopt,
                            MatmulProgramConfig(config), std::nullopt, std::nullopt, std::nullopt,
                            std::nullopt, std::nullopt, std::nullopt, std::nullopt);
    }
};

constexpr auto kRowMajor = ShardOrientation::ROW_MAJOR;
const MemoryConfig kHeightL1(kHeight, BufferType::L1, std::nullopt);
const MemoryConfig kWidthL1(kWidth, BufferType::L1, std::nullopt);
const MemoryConfig kBlockL1(kBlock, BufferType::L1, std::nullopt);
const MemoryConfig kHeightDRAM(kHeight, BufferType::DRAM, std::nullopt);

void test_blocks() {
    Blocks config;
    config.compute_with_storage_grid_size = {2, 4};
    config.in0_block_w = config.out_subblock_h = config.out_subblock_w = 1;
    config.out_block_h = config.out_block_w = config.per_core_M = config.per_core_N = 1;
    config.fuse_batch = true;
    const Product<Blocks> call{placed(Shape({2, 64, 64})), placed(Shape({64, 64})), config};
    using Call = Product<Blocks>;
    check_rows<Call>(
        call,
        {
            {"in0_block_w is 0, which is not valid", [](Call& p) { p.config.in0_block_w = 0; }},
            {"out_subblock_h is 0, which is not valid",
             [](Call& p) { p.config.out_subblock_h = 0; }},
            {"out_subblock_w is 0, which is not valid",
             [](Call& p) { p.config.out_subblock_w = 0; }},
            {"out_block_h is 0, which is not valid", [](Call& p) { p.config.out_block_h = 0; }},
            {"out_block_w is 0, which is not valid", [](Call& p) { p.config.out_block_w = 0; }},
            {"per_core_M is 0, which is not valid", [](Call& p) { p.config.per_core_M = 0; }},
            {"per_core_N is 0, which is not valid", [](Call& p) { p.config.per_core_N = 0; }},
            {"Matmul with fused batch requires input tensors of shapes BCMK*11KN=BCMN",
             [](Call& p) { p.right = placed(Shape({2, 64, 64})); }},
            {"Error: incompatible values 1 and 2", [](Call& p) { p.config.out_block_h = 2; }},
            {"Error: incompatible values 1 and 2", [](Call& p) { p.config.out_block_w = 2; }},
            {"Error: incompatible values 1 and 2", [](Call& p) { p.config.out_subblock_h = 2; }},
            {"Error: incompatible values 1 and 2", [](Call& p) { p.config.out_subblock_w = 2; }},
            {"Kt must be divisible by in0_block_w", [](Call& p) { p.config.in0_block_w = 3; }},
            {"Num output blocks along x (2) must be smaller",
             [](Call& p) { p.config.compute_with_storage_grid_size = {1, 4}; }},
            {"Num output blocks along y (4) must be smaller",
             [](Call& p) { p.config.compute_with_storage_grid_size = {2, 2}; }},
            {"Output memory layout must be BLOCK_SHARDED", [](Call& p) { p.memory = kWidthL1; }},
            {"Error: out_block_w must be equal to per_core_N or out_block_h must be equal to 1",
             [](Call& p) {
                 p.memory = kBlockL1;
                 p.config.per_core_N = p.config.per_core_M = p.config.out_block_h = 2;
             }},
            {"Error: out_subblock_w must be equal to per_core_N or out_subblock_h must be equal",
             [](Call& p) {
                 p.memory = kBlockL1;
                 p.config.per_core_N = p.config.per_core_M = 2;
                 p.config.out_block_h = p.config.out_block_w = p.config.out_subblock_h = 2;
             }},
        });
    const Shape square({64, 64});
    check_rows<Call>(
        call,
        {
            {"Unsupported memory layout TensorMemoryLayout::WIDTH_SHARDED",
             [](Call& p) { p.left = placed(Shape({2, 64, 64}), sharded(kWidth, 128, 32, 2, 1)); }},
            {"Transpose MCAST not supported with",
             [](Call& p) {
                 p.left = placed(Shape({2, 64, 64}), sharded(kHeight, 32, 64, 1, 4));
                 p.config.transpose_mcast = true;
             }},
            {"K (2) must equal in0_block_w (1)",
             [](Call& p) { p.left = placed(Shape({2, 64, 64}), sharded(kHeight, 32, 64, 1, 4)); }},
            {"Input tensor A must have ROW_MAJOR shard orientation",
             [&](Call& p) {
                 p.left =
                     placed(square, sharded(kBlock, 32, 32, 2, 2, ShardOrientation::COL_MAJOR));
             }},
            {"Grid bounding box x coordinates must match",
             [](Call& p) {
                 p.left = placed(Shape({2, 64, 64}), sharded(kHeight, 32, 64, 2, 2));
                 p.config.in0_block_w = 2;
             }},
            {"Transpose MCAST not supported when input B is sharded",
             [&](Call& p) {
                 p.right = placed(square, sharded(kWidth, 64, 32, 2, 1));
                 p.config.transpose_mcast = true;
             }},
            {"Input B memory layout must be WIDTH_SHARDED or HEIGHT_SHARDED",
             [&](Call& p) { p.right = placed(square, sharded(kBlock, 32, 32, 2, 2)); }},
            {"HEIGHT_SHARDED input B is only supported in DRAM",
             [&](Call& p) { p.right = placed(square, sharded(kHeight, 32, 64, 2, 1)); }},
            {"HEIGHT_SHARDED input B requires fuse_batch=false",
             [&](Call& p) {
                 p.right =
                     placed(square, sharded(kHeight, 32, 64, 2, 1, kRowMajor, BufferType::DRAM));
             }},
            {"per_core_N (1) must equal the shard's width of input tensor B in tiles (2)",
             [&](Call& p) { p.right = placed(square, sharded(kWidth, 64, 64, 1, 1)); }},
            {"Width-sharded input tensor B grid bounding box must have equal start and end y",
             [&](Call& p) { p.right = placed(square, sharded(kWidth, 64, 32, 1, 2)); }},
        });
    // The left operand is block-sharded, a tile on each of 2 x 4 cores.
    Product<Blocks> sharded_left = call;
    sharded_left.left = placed(Shape({2, 64, 64}), sharded(kBlock, 32, 32, 2, 4));
    sharded_left.memory = kBlockL1;
    check_rows<Call>(
        sharded_left,
        {
            {"Input A and output buffer types must match",
             [](Call& p) { p.memory = MemoryConfig(kBlock, BufferType::DRAM, std::nullopt); }},
            {"Input A and output memory layouts must match", [](Call& p) { p.memory = kHeightL1; }},
            {"Tensor shard spec grid must be within config grid!",
             [](Call& p) { p.config.compute_with_storage_grid_size = {1, 4}; }},
            {"Batch fusion is required when input A is sharded",
             [](Call& p) { p.config.fuse_batch = false; }},
            {"Error - non-DRAM width sharded input B requires input A to be interleaved",
             [&](Call& p) { p.right = placed(square, sharded(kWidth, 64, 32, 2, 1)); }},
            {"Input tensor A must have COL_MAJOR shard orientation",
             [](Call& p) { p.config.transpose_mcast = true; }},
            {"per_core_M (2) must equal shard_shape[0] / in0_tile.get_height() (1)",
             [](Call& p) { p.config.per_core_M = p.config.out_block_h = 2; }},
            {"shard_shape[1] / in0_tile.get_width() (1) must be divisible by in0_block_w (2)",
             [](Call& p) { p.config.in0_block_w = 2; }},
        });
}

void test_lines() {
    Line config;
    config.compute_with_storage_grid_size = {2, 1};
    config.in0_block_w = config.out_subblock_h = config.out_subblock_w = 1;
    config.out_block_h = config.out_block_w = config.per_core_M = config.per_core_N = 1;
    config.fuse_batch = config.mcast_in0 = true;
    using Call = Product<Line>;
    const Product<Line> call{placed(Shape({32, 64}), sharded(kWidth, 32, 32, 2, 1)),
                             placed(Shape({64, 64})), config, kWidthL1};
    check_rows<Call>(
        call,
        {
            {"Matmul1D does not support mcast_in0 and gather_in0 at the same time",
             [](Call& p) { p.config.gather_in0 = true; }},
            {"Num global CB receivers must be greater than 0",
             [](Call& p) {
                 p.config.gather_in0 = true;
                 p.config.mcast_in0 = false;
                 p.config.num_global_cb_receivers = 0;
             }},
            {"Input tensor A must be width sharded when using gather_in0",
             [](Call& p) {
                 p.config.gather_in0 = true;
                 p.config.mcast_in0 = false;
                 p.config.num_global_cb_receivers = 1;
                 p.left = placed(Shape({32, 64}));
             }},
            {"Unsupported data type",
             [](Call& p) {
                 p.config.untilize_out = true;
                 p.left =
                     placed(Shape({32, 64}), sharded(kWidth, 32, 32, 2, 1), DataType::BFLOAT8_B);
             }},
            {"Error: input_tensor_a must be width sharded. Provided tensor memory layout",
             [](Call& p) { p.left = placed(Shape({32, 64}), sharded(kHeight, 32, 64, 1, 1)); }},
            {"Error: shard_shape[1] / in0_tile.get_width() (1) must be divisible by in0_block_w",
             [](Call& p) { p.config.in0_block_w = 2; }},
            {"Error: Output memory layout must be WIDTH_SHARDED or BLOCK_SHARDED on a 1-row grid",
             [](Call& p) {
                 p.left = placed(Shape({32, 64}));
                 p.memory = kHeightL1;
             }},
            {"Operand B can only be interleaved or L1 width sharded.",
             [](Call& p) { p.right = placed(Shape({64, 64}), sharded(kHeight, 32, 64, 2, 1)); }},
            {"Shard width must match per core N.",
             [](Call& p) { p.right = placed(Shape({64, 64}), sharded(kWidth, 64, 64, 1, 1)); }},
            {"Error: Batch fusion must be enabled", [](Call& p) { p.config.fuse_batch = false; }},
            {"Input tensor A must have ROW_MAJOR shard orientation",
             [](Call& p) {
                 p.left = placed(Shape({32, 64}),
                                 sharded(kWidth, 32, 32, 2, 1, ShardOrientation::COL_MAJOR));
             }},
            {"Error: M 2 must be equal to per_core_M 1",
             [](Call& p) { p.left = placed(Shape({64, 64})); }},
            {"Number of blocks exceeds number of cores: 4 blocks > 2 cores",
             [](Call& p) {
                 p.left = placed(Shape({64, 64}));
                 p.memory = kDRAM;
             }},
        });
    Product<Line> down = call;
    down.config.mcast_in0 = false;
    down.config.in0_block_w = down.config.per_core_N = down.config.out_block_w = 2;
    down.config.compute_with_storage_grid_size = {1, 2};
    down.left = placed(Shape({64, 64}), sharded(kHeight, 32, 64, 1, 2));
    down.memory = kHeightL1;
    check_rows<Call>(
        down,
        {
            {"Error: Batch fusion must be enabled", [](Call& p) { p.config.fuse_batch = false; }},
            {"Error: input_tensor_a must be height sharded.",
             [](Call& p) { p.left = placed(Shape({64, 64}), sharded(kBlock, 32, 64, 1, 2)); }},
            {"Error: per_core_M must be equal to shard_shape[0] / in0_tile.get_height().",
             [](Call& p) { p.config.per_core_M = p.config.out_block_h = 2; }},
            {"Error: Output memory layout must be HEIGHT_SHARDED or BLOCK_SHARDED on a 1-column",
             [](Call& p) {
                 p.left = placed(Shape({64, 64}));
                 p.memory = kWidthL1;
             }},
            {"Error: N must be equal to per_core_N.",
             [](Call& p) { p.config.per_core_N = p.config.out_block_w = 1; }},
            {"Error: Operand B must be interleaved.",
             [](Call& p) { p.right = placed(Shape({64, 64}), sharded(kWidth, 64, 64, 1, 1)); }},
            {"Error: M must be divisible by per_core_M.",
             [](Call& p) { p.left = placed(Shape({64, 64}), sharded(kHeight, 64, 64, 1, 1)); }},
        });
}

void test_reuse() {
    Reuse config;
    config.compute_with_storage_grid_size = {2, 1};
    config.in0_block_w = 2;
    config.out_subblock_h = config.out_subblock_w = 1;
    config.per_core_M = config.per_core_N = 2;
    using Call = Product<Reuse>;
    const Product<Reuse> call{placed(Shape({2, 64, 64})), placed(Shape({2, 64, 64})), config};
    check_rows<Call>(
        call,
        {
            {"per_core_M, 3, must be a multiple of M, 2 if per_core_M > M!",
             [](Call& p) { p.config.per_core_M = 3; }},
            {"input a total height, 4, must be divisible by per_core_M, 6!",
             [](Call& p) { p.config.per_core_M = 6; }},
            {"per_core_M, 2, must divide M, 3, if per_core_M < M!",
             [](Call& p) { p.left = placed(Shape({2, 96, 64})); }},
            {"Error: N, 2, is not equal to per_core_N, 1",
             [](Call& p) { p.config.per_core_N = 1; }},
            {"is not width sharded",
             [](Call& p) { p.left = placed(Shape({2, 64, 64}), sharded(kWidth, 128, 32, 2, 1)); }},
            {"out_subblock_w 3 times out_subblock_h 4 needs to be at most 8 to fit in hardware",
             [](Call& p) {
                 p.left = placed(Shape({128, 64}));
                 p.right = placed(Shape({64, 96}));
                 p.config.per_core_M = p.config.out_subblock_h = 4;
                 p.config.per_core_N = p.config.out_subblock_w = 3;
             }},
            {"Batch broadcasting is not supported for the chosen program config",
             [](Call& p) { p.right = placed(Shape({64, 64})); }},
            {"out_subblock_h (3) needs to divide M (2) evenly and does not",
             [](Call& p) { p.config.out_subblock_h = 3; }},
            {"per_core_N must be divisible by out_subblock_w",
             [](Call& p) { p.config.out_subblock_w = 3; }},
            {"per_core_M must be divisible by out_subblock_h",
             [](Call& p) {
                 p.left = p.right = placed(Shape({64, 64}));
                 p.config.out_subblock_h = 3;
             }},
            {"Kt must be divisible by in0_block_w", [](Call& p) { p.config.in0_block_w = 3; }},
            {"Output memory layout must not be WIDTH_SHARDED",
             [](Call& p) { p.memory = kWidthL1; }},
            {"per_core_M must be a multiple of M if input b is sharded!",
             [](Call& p) {
                 p.config.per_core_M = 1;
                 p.right = placed(Shape({2, 64, 64}), sharded(kHeight, 64, 64, 2, 1));
             }},
            {"Input B memory layout must not be WIDTH_SHARDED",
             [](Call& p) { p.right = placed(Shape({2, 64, 64}), sharded(kWidth, 128, 32, 2, 1)); }},
            {"Input B shard shape[1] (32) must equal padded N (64)",
             [](Call& p) { p.right = placed(Shape({2, 64, 64}), sharded(kBlock, 64, 32, 2, 2)); }},
            {"Input B shard shape[0] (32) must be divisible by 64",
             [](Call& p) { p.right = placed(Shape({2, 64, 64}), sharded(kHeight, 32, 64, 4, 1)); }},
        });
    Product<Reuse> sharded_left = call;
    sharded_left.left = placed(Shape({2, 64, 64}), sharded(kHeight, 64, 64, 2, 1));
    sharded_left.memory = kHeightL1;
    check_rows<Call>(
        sharded_left,
        {
            {"Error: 1 needs to equal 2", [](Call& p) { p.config.per_core_M = 1; }},
            {"Input tensors A and B must have matching memory layouts, grids and orientations",
             [](Call& p) { p.right = placed(Shape({2, 64, 64}), sharded(kHeight, 64, 64, 1, 2)); }},
            {"Input A and output buffer types must match", [](Call& p) { p.memory = kHeightDRAM; }},
        });
}

void test_weights_in_dram() {
    FromDRAM config;
    config.in0_block_w = config.per_core_M = config.per_core_N = 1;
    using Call = Product<FromDRAM>;
    const MemoryConfig banks =
        sharded(kWidth, 64, 32, 2, 1, ShardOrientation::ROW_MAJOR, BufferType::DRAM);
    const Product<FromDRAM> call{placed(Shape({32, 64}), sharded(kWidth, 32, 32, 2, 1)),
                                 placed(Shape({64, 64}), banks), config, kWidthL1};
    check_rows<Call>(
        call,
        {
            {"Input tensor A must be sharded for DRAM sharded program config",
             [](Call& p) { p.left = placed(Shape({32, 64})); }},
            {"Output memory config must be sharded for DRAM sharded program config",
             [](Call& p) { p.memory = kDRAM; }},
            {"Input A memory layout must be WIDTH_SHARDED",
             [](Call& p) { p.left = placed(Shape({32, 64}), sharded(kHeight, 32, 64, 1, 1)); }},
            {"M (1) must equal per_core_M (2)", [](Call& p) { p.config.per_core_M = 2; }},
            {"currently only support in0 tensor height of tile height",
             [](Call& p) {
                 p.left = placed(Shape({64, 64}), sharded(kWidth, 64, 32, 2, 1));
                 p.config.per_core_M = 2;
             }},
            {"K (2) must be divisible by in0_block_w (3)",
             [](Call& p) { p.config.in0_block_w = 3; }},
            {"Input B memory layout must be WIDTH_SHARDED",
             [](Call& p) { p.right = placed(Shape({64, 64})); }},
            {"in DRAM sharded Matmul we don't have support for un-even sharding currently",
             [](Call& p) {
                 p.left = placed(Shape({32, 96}), sharded(kWidth, 32, 64, 2, 1));
                 p.right = placed(Shape({96, 64}),
                                  sharded(kWidth, 96, 32, 2, 1, kRowMajor, BufferType::DRAM));
             }},
        });
}

void test_batches_in_dram() {
    MatmulMultiCoreReuseMultiCastBatchedDRAMShardedProgramConfig config;
    config.in0_block_w = config.per_core_M = 1;
    config.per_core_N = 2;
    using Call = Product<decltype(config)>;
    const Call call{
        placed(Shape({2, 32, 64}), sharded(kHeight, 32, 64, 2, 1)),
        placed(Shape({2, 64, 64}), sharded(kHeight, 64, 64, 2, 1, kRowMajor, BufferType::DRAM)),
        config, sharded(kHeight, 32, 64, 2, 1)};
    check_rows<Call>(
        call,
        {
            {"Input A and output must be sharded for batch-sharded DRAM matmul",
             [](Call& p) { p.memory = kDRAM; }},
            {"Input A and output must be sharded for batch-sharded DRAM matmul",
             [](Call& p) { p.left = placed(Shape({2, 32, 64})); }},
            {"Memory layout must be HEIGHT_SHARDED for batch-sharded DRAM matmul",
             [](Call& p) { p.left = placed(Shape({2, 32, 64}), sharded(kWidth, 64, 32, 2, 1)); }},
            {"Memory layout must be HEIGHT_SHARDED for batch-sharded DRAM matmul",
             [](Call& p) { p.right = placed(Shape({2, 64, 64})); }},
            {"N dimension (2) must be divisible by in0_block_w (3)",
             [](Call& p) { p.config.in0_block_w = 3; }},
        });
}

/// A matmul whose program config is left to the release.
struct Automatic {
    Tensor left = placed(Shape({2, 64, 64}));
    Tensor right = placed(Shape({2, 64, 64}));
    MemoryConfig memory = kDRAM;
    std::optional<const ttnn::CoreGrid> grid = std::nullopt;
    std::optional<const DataType> dtype = std::nullopt;
    std::optional<Tensor> output = std::nullopt;
    std::optional<MatmulProgramConfig> config = std::nullopt;
    std::optional<const ttnn::Activation> activation = std::nullopt;

    Tensor operator()() const {
        return ttnn::matmul(left, right, false, false, memory, dtype, config, activation,
                            std::nullopt, grid, std::nullopt, output, std::nullopt, std::nullopt);
    }
};

void test_automatic_configs() {
    const Shape batches({2, 64, 64});
    const Shape square({64, 64});
    const auto tall = sharded(kHeight, 64, 64, 2, 1);
    const auto wide = sharded(kWidth, 128, 32, 2, 1);
    Automatic on_grid;
    on_grid.grid.emplace(2, 1);
    check_rows<Automatic>(on_grid,
                          {
                              {"MatmulMultiCoreReuseProgramConfig: Input A cannot be width sharded",
                               [&](Automatic& p) { p.left = placed(batches, wide); }},
                              {"MatmulMultiCoreReuseProgramConfig: Input B cannot be width sharded",
                               [&](Automatic& p) { p.right = placed(batches, wide); }},
                          });
    Automatic shards;
    shards.left = shards.right = placed(batches, tall);
    check_rows<Automatic>(
        shards,
        {
            {"Input A memory layout must not be WIDTH_SHARDED",
             [&](Automatic& p) { p.left = placed(batches, wide); }},
            {"Input A and B buffer types must match",
             [&](Automatic& p) {
                 p.right =
                     placed(batches, sharded(kHeight, 64, 64, 2, 1, kRowMajor, BufferType::DRAM));
             }},
            {"Input A and B memory layouts must match",
             [&](Automatic& p) { p.right = placed(batches, sharded(kBlock, 64, 64, 1, 2)); }},
            {"Input A and B shard grids must match",
             [&](Automatic& p) { p.right = placed(batches, sharded(kHeight, 64, 64, 1, 2)); }},
            {"Orientation mismatch",
             [&](Automatic& p) {
                 p.right =
                     placed(batches, sharded(kHeight, 64, 64, 2, 1, ShardOrientation::COL_MAJOR));
             }},
        });
    Automatic blocks;
    blocks.left = placed(square, sharded(kBlock, 32, 32, 2, 2));
    blocks.right = placed(square);
    check_rows<Automatic>(
        blocks,
        {
            {"Input tensor A must have ROW_MAJOR shard orientation",
             [&](Automatic& p) {
                 p.left =
                     placed(square, sharded(kWidth, 64, 32, 2, 1, ShardOrientation::COL_MAJOR));
             }},
            {"Num cores along y (2) must match provided grid size (1)",
             [](Automatic& p) { p.left = placed(Shape({32, 64}), sharded(kBlock, 32, 32, 2, 2)); }},
            {"Num cores along x (2) must match provided grid size (1)",
             [](Automatic& p) {
                 p.left = placed(Shape({64, 32}), sharded(kBlock, 32, 32, 2, 2));
                 p.right = placed(Shape({32, 64}));
             }},
            {"Sharded matmul run with an activation",
             [](Automatic& p) { p.activation.emplace("relu"); }},
            {"Type mismatch between optional output tensor & output dtype",
             [&](Automatic& p) {
                 p.left = placed(square);
                 p.dtype.emplace(DataType::FLOAT32);
                 p.output = placed(square);
             }},
        });
}

void test_sums_with_products() {
    const Tensor square = placed(Shape({64, 64}));
    accepted([&] { return ttnn::addmm(square, square, square); });
    refused("input_tensor must have shape matching the result of mat1_tensor @ mat2_tensor",
            [&] { return ttnn::addmm(placed(Shape({64, 32})), square, square); });
}

}  // namespace

int main() {
    test_blocks();
    test_lines();
    test_reuse();
    test_weights_in_dram();
    test_batches_in_dram();
    test_automatic_configs();
    test_sums_with_products();
    return 0;
}
