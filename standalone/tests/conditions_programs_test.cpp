// Calls with program configs and shards that violate one condition of tt-metal 0.70.1 each:
// matmuls, normalizations, softmax, embeddings and attention heads.

#include "conditions_testing.hpp"
#include "ttnn/operations/embedding/embedding.hpp"
#include "ttnn/operations/experimental/transformer/nlp_concat_heads_decode/nlp_concat_heads_decode.hpp"
#include "ttnn/operations/experimental/transformer/nlp_create_qkv_heads/nlp_create_qkv_heads.hpp"
#include "ttnn/operations/experimental/transformer/nlp_create_qkv_heads_decode/nlp_create_qkv_heads_decode.hpp"
#include "ttnn/operations/experimental/transformer/rotary_embedding/rotary_embedding.hpp"
#include "ttnn/operations/experimental/transformer/rotary_embedding_llama/rotary_embedding_llama.hpp"
#include "ttnn/operations/matmul/matmul.hpp"
#include "ttnn/operations/normalization/layernorm/layernorm.hpp"
#include "ttnn/operations/normalization/rmsnorm/rmsnorm.hpp"
#include "ttnn/operations/normalization/softmax/softmax.hpp"

using namespace conditions_testing;

namespace {

using namespace ttnn::operations::matmul;

Tensor multiply(const Tensor& a, const Tensor& b, const MatmulProgramConfig& program,
                const MemoryConfig& memory = kDRAM, bool transpose_a = false) {
    return ttnn::matmul(a, b, transpose_a, false, memory, std::nullopt, program, std::nullopt,
                        std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                        std::nullopt);
}

/// 2 x 2 cores with one tile of the result each.
MatmulMultiCoreReuseMultiCastProgramConfig blocks(bool fuse_batch = true) {
    MatmulMultiCoreReuseMultiCastProgramConfig config;
    config.compute_with_storage_grid_size = {2, 4};
    config.in0_block_w = config.out_subblock_h = config.out_subblock_w = 1;
    config.out_block_h = config.out_block_w = config.per_core_M = config.per_core_N = 1;
    config.fuse_batch = fuse_batch;
    return config;
}

void test_products() {
    const Tensor left = placed(Shape({2, 64, 64}));
    const Tensor right = placed(Shape({64, 64}));
    accepted([&] { return multiply(left, right, blocks()); });
    refused("transpose_a with fuse_batch is not supported when batch dimensions exist",
            [&] { return multiply(left, right, blocks(), kDRAM, true); });
    const MemoryConfig block(kBlock, BufferType::L1, std::nullopt);
    accepted([&] { return multiply(left, right, blocks(), block); });
    refused("Block-sharded output is incompatible with batch > 1",
            [&] { return multiply(left, right, blocks(false), block); });
    refused("Cannot use both user core grid/coordinates and a program config", [&] {
        return ttnn::matmul(left, right, false, false, kDRAM, std::nullopt,
                            MatmulProgramConfig(blocks()), std::nullopt, std::nullopt,
                            ttnn::CoreGrid(2, 2), std::nullopt, std::nullopt, std::nullopt,
                            std::nullopt);
    });
    MatmulMultiCoreReuseMultiCast1DProgramConfig row;
    row.compute_with_storage_grid_size = {2, 1};
    row.in0_block_w = row.out_subblock_h = row.out_subblock_w = 1;
    row.out_block_h = row.out_block_w = row.per_core_M = row.per_core_N = 1;
    row.fuse_batch = row.mcast_in0 = true;
    const auto linear = [&](const Tensor& bias) {
        return ttnn::linear(
            placed(Shape({32, 64})), placed(Shape({64, 64}), sharded(kWidth, 64, 32, 2, 1)), bias,
            false, false, kDRAM, std::nullopt, MatmulProgramConfig(row), std::nullopt, std::nullopt,
            std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
    };
    accepted([&] { return linear(placed(Shape({1, 64}), sharded(kWidth, 32, 32, 2, 1))); });
    refused("Bias shard spec width must match second inputs shard spec width",
            [&] { return linear(placed(Shape({1, 64}))); });
}

void test_norms() {
    using ttnn::prim::LayerNormShardedMultiCoreProgramConfig;
    const auto norm = [](const Tensor& input, const Tensor& weight, std::size_t width,
                         std::size_t columns) {
        LayerNormShardedMultiCoreProgramConfig config;
        config.compute_with_storage_grid_size = {columns, 1};
        config.subblock_w = config.block_h = 1;
        config.block_w = width;
        return ttnn::rms_norm(input, 1e-5F, weight, std::nullopt, std::nullopt, std::nullopt,
                              ttnn::prim::LayerNormProgramConfig(config), std::nullopt);
    };
    const Tensor weight = placed(Shape({1, 160}));
    // Five tiles on three cores: two on each, and the last shard half empty.
    accepted([&] {
        return norm(placed(Shape({32, 160}), sharded(kWidth, 32, 64, 3, 1)), weight, 2, 3);
    });
    refused("Block width * tile_width must match shard shape[1]", [&] {
        return norm(placed(Shape({32, 160}), sharded(kWidth, 32, 96, 3, 1)), weight, 2, 3);
    });
    refused("Gamma tensor height must equal tile height", [&] {
        return ttnn::rms_norm(placed(Shape({32, 64})), 1e-5F, placed(Shape({64, 64})), std::nullopt,
                              std::nullopt, std::nullopt, std::nullopt, std::nullopt);
    });
    refused("ROW_MAJOR input is not supported with sharded tensors", [&] {
        const MemoryConfig memory = sharded(kWidth, 32, 32, 2, 1);
        return ttnn::layer_norm(
            placed(Shape({32, 64}), memory, DataType::BFLOAT16, Layout::ROW_MAJOR), 1e-5F,
            std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt,
            std::nullopt);
    });
}

void test_softmax() {
    const auto softmax = [](std::size_t columns, std::size_t subblock) {
        ttnn::SoftmaxShardedMultiCoreProgramConfig config;
        config.compute_with_storage_grid_size = {columns, 1};
        config.subblock_w = subblock;
        config.block_h = 1;
        config.block_w = 2;
        const Tensor input = placed(Shape({1, 1, 64, 64}), sharded(kHeight, 32, 64, 2, 1));
        return ttnn::scale_mask_softmax_in_place(input, 1.0F, placed(Shape({1, 1, 32, 64})),
                                                 config);
    };
    accepted([&] { return softmax(2, 1); });
    refused("number of shards (2) must equal to number of cores (4)",
            [&] { return softmax(4, 1); });
    refused("block_w must be divisible by subblock_w", [&] { return softmax(2, 3); });
}

void test_embedding() {
    const auto embed = [](const MemoryConfig& memory) {
        return ttnn::embedding(
            placed(Shape({1, 64}), kDRAM, DataType::UINT32, Layout::ROW_MAJOR),
            placed(Shape({10, 96}), kDRAM, DataType::BFLOAT16, Layout::ROW_MAJOR), std::nullopt,
            Layout::TILE, ttnn::prim::EmbeddingsType::GENERIC, std::nullopt, memory, std::nullopt);
    };
    accepted([&] { return embed(sharded(kHeight, 32, 96, 2, 1)); });
    refused("Input tensor volume 64 must be a multiple of shard height 96",
            [&] { return embed(sharded(kHeight, 96, 96, 1, 1)); });
    refused("Number of columns in table 96 must be factor of shard width 64",
            [&] { return embed(sharded(kWidth, 64, 64, 2, 1)); });
}

void test_heads() {
    using namespace ttnn::experimental;
    const auto create = [](const Shape& queries, const std::optional<Tensor>& keys,
                           std::uint32_t heads, std::uint32_t kv_heads,
                           const MemoryConfig& memory = kDRAM) {
        return nlp_create_qkv_heads(placed(queries, memory), keys, heads, kv_heads, false,
                                    memory.is_sharded() ? std::optional(memory) : std::nullopt,
                                    std::nullopt);
    };
    const Shape fused({1, 1, 32, 256});
    accepted([&] { return create(fused, std::nullopt, 4, 2); });
    refused("Number of Q heads (2) must be >= number of KV heads (3)",
            [&] { return create(fused, std::nullopt, 2, 3); });
    const Shape apart({1, 1, 32, 64});
    accepted([&] { return create(apart, placed(Shape({1, 1, 32, 128})), 2, 2); });
    refused("KV tensor dtype must be same as Q tensor dtype!", [&] {
        return create(apart, placed(Shape({1, 1, 32, 128}), kDRAM, DataType::FLOAT32), 2, 2);
    });
    refused("of the KV tensor",
            [&] { return create(apart, placed(Shape({1, 2, 32, 128})), 2, 2); });
    refused("Input tensor must be sharded when KV tensor is sharded", [&] {
        return create(apart, placed(Shape({1, 1, 32, 128}), sharded(kWidth, 32, 64, 2, 1)), 2, 2);
    });
    const MemoryConfig two = sharded(kWidth, 32, 32, 2, 1);
    refused("Input tensor and KV tensor must have the same shard grid", [&] {
        return create(apart, placed(Shape({1, 1, 32, 128}), sharded(kWidth, 32, 64, 1, 2)), 2, 2,
                      two);
    });
    refused("Input tensor and KV tensor must have the same shard orientation", [&] {
        const auto turned = ShardOrientation::COL_MAJOR;
        return create(apart, placed(Shape({1, 1, 32, 128}), sharded(kWidth, 32, 64, 2, 1, turned)),
                      2, 2, two);
    });
    refused("KV tensor shard spec shape[1] (96) must equal 2 * head_dim (64)", [&] {
        return create(apart, placed(Shape({1, 1, 32, 128}), sharded(kWidth, 32, 96, 2, 1)), 2, 2,
                      two);
    });
}

void test_decode_heads() {
    using namespace ttnn::experimental;
    std::optional<std::array<Tensor, 3>> nothing;
    const auto split = [&](const Shape& shape, const MemoryConfig& memory, std::uint32_t heads,
                           std::uint32_t kv_heads, bool overlap) {
        return nlp_create_qkv_heads_decode(placed(shape, memory), heads, kv_heads, nothing, overlap,
                                           std::nullopt, std::nullopt, std::nullopt);
    };
    const Shape users({1, 1, 8, 128});
    accepted([&] { return split(users, kDRAM, 2, 1, true); });
    refused("num_q_heads=1 must be greater than or equal to num_kv_heads=2",
            [&] { return split(Shape({1, 1, 8, 160}), kDRAM, 1, 2, true); });
    refused("Need cores at least double of num_users", [&] {
        const auto grid = device()->compute_with_storage_grid_size();
        const CoreRangeSet few(CoreRange({0, 0}, {0, 7 < grid.y ? 7 : grid.y - 1}));
        const MemoryConfig wanted(
            kHeight, BufferType::L1,
            ShardSpec(few, std::array<std::uint32_t, 2>{32, 32}, ShardOrientation::ROW_MAJOR));
        return nlp_create_qkv_heads_decode(placed(users, sharded(kWidth, 32, 32, 4, 1)), 2, 1,
                                           nothing, false, std::nullopt, std::nullopt, wanted);
    });
    const auto join = [](const MemoryConfig& memory) {
        return nlp_concat_heads_decode(placed(Shape({1, 4, 32, 64}), memory), 8, std::nullopt,
                                       std::nullopt, std::nullopt);
    };
    accepted([&] { return join(sharded(kHeight, 32, 64, 4, 1)); });
    refused("Shard spec shape[0] (64) must match input tensor padded shape[-2] (32)",
            [&] { return join(sharded(kHeight, 64, 64, 2, 1)); });
    refused("Input core grid num_cores (8) must be equal to num users (4)",
            [&] { return join(sharded(kHeight, 32, 64, 8, 1)); });
}

void test_rotary() {
    using namespace ttnn::experimental;
    const Tensor input = placed(Shape({1, 2, 32, 64}));
    const Tensor table = placed(Shape({1, 1, 32, 64}));
    refused("Cos and Sin dtypes must match", [&] {
        return rotary_embedding(input, table,
                                placed(Shape({1, 1, 32, 64}), kDRAM, DataType::FLOAT32),
                                std::nullopt, std::nullopt, std::nullopt);
    });
    const auto rotate = [&](const Tensor& cosines, const Tensor& sines, const Tensor& matrix,
                            std::optional<const ttnn::DeviceComputeKernelConfig> config =
                                std::nullopt) {
        const std::uint32_t width = cosines.logical_shape()[3];
        return rotary_embedding_llama(placed(Shape({1, 2, 32, width})), cosines, sines, matrix,
                                      false, std::nullopt, config);
    };
    const Tensor matrix = placed(Shape({1, 1, 32, 32}));
    const auto on_core = [](std::uint32_t height, std::uint32_t width) {
        return placed(Shape({1, 1, 32, 64}), sharded(kHeight, height, width, 1, 1));
    };
    accepted([&] { return rotate(on_core(32, 64), on_core(32, 64), matrix); });
    refused("Cos and sin must both be HEIGHT_SHARDED or both be INTERLEAVED",
            [&] { return rotate(on_core(32, 64), table, matrix); });
    refused("must be either INTERLEAVED or HEIGHT_SHARDED for prefill RoPE", [&] {
        const Tensor wide = placed(Shape({1, 1, 32, 64}), sharded(kWidth, 32, 32, 2, 1));
        return rotate(wide, wide, matrix);
    });
    refused("shard height must equal TILE_HEIGHT for prefill RoPE",
            [&] { return rotate(on_core(64, 64), on_core(64, 64), matrix); });
    refused("HEIGHT_SHARDED cos/sin in prefill RoPE requires head-broadcast", [&] {
        const Tensor heads = placed(Shape({1, 2, 32, 64}), sharded(kHeight, 32, 64, 2, 1));
        return rotate(heads, heads, matrix);
    });
    refused("Transformation matrix must have 1st & 2nd dim equal to 1",
            [&] { return rotate(table, table, placed(Shape({1, 2, 32, 32}))); });
    refused("If head_dim is > 128, fp32_dest_acc_en must be False", [&] {
        ttnn::DeviceComputeKernelConfig config;
        config.fp32_dest_acc_en = true;
        const Tensor wide = placed(Shape({1, 1, 32, 256}));
        return rotate(wide, wide, matrix, config);
    });
}

}  // namespace

int main() {
    test_products();
    test_norms();
    test_softmax();
    test_embedding();
    test_heads();
    test_decode_heads();
    test_rotary();
    return 0;
}
