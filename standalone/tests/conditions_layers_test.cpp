// Calls of normalizations, softmax, rotary embeddings, heads and caches that violate one condition
// of tt-metal 0.70.1 each.

#include "conditions_testing.hpp"
#include "ttnn/operations/embedding/embedding.hpp"
#include "ttnn/operations/experimental/paged_cache/paged_cache.hpp"
#include "ttnn/operations/experimental/transformer/nlp_concat_heads_decode/nlp_concat_heads_decode.hpp"
#include "ttnn/operations/experimental/transformer/nlp_create_qkv_heads_decode/nlp_create_qkv_heads_decode.hpp"
#include "ttnn/operations/experimental/transformer/rotary_embedding/rotary_embedding.hpp"
#include "ttnn/operations/experimental/transformer/rotary_embedding_llama/rotary_embedding_llama.hpp"
#include "ttnn/operations/kv_cache/kv_cache.hpp"
#include "ttnn/operations/normalization/layernorm/layernorm.hpp"
#include "ttnn/operations/normalization/softmax/softmax.hpp"
#include "ttnn/operations/transformer/concatenate_heads/concatenate_heads.hpp"
#include "ttnn/operations/transformer/split_query_key_value_and_split_heads/split_query_key_value_and_split_heads.hpp"

using namespace conditions_testing;

namespace {

constexpr auto kRows = Layout::ROW_MAJOR;
constexpr auto kColumnMajor = ShardOrientation::COL_MAJOR;
const MemoryConfig kBareHeight(kHeight, BufferType::L1, std::nullopt);

/// Four tiles in a row on two cores, or four by four on two by two.
struct Norm {
    Tensor input = placed(Shape({32, 128}), sharded(kWidth, 32, 64, 2, 1));
    std::optional<Tensor> residual;
    std::optional<MemoryConfig> memory;
    ttnn::prim::LayerNormShardedMultiCoreProgramConfig config = of({2, 1}, 1);

    static ttnn::prim::LayerNormShardedMultiCoreProgramConfig of(CoreCoord grid,
                                                                 std::size_t height) {
        ttnn::prim::LayerNormShardedMultiCoreProgramConfig found;
        found.compute_with_storage_grid_size = grid;
        found.subblock_w = 1;
        found.block_h = height;
        found.block_w = 2;
        return found;
    }

    Tensor operator()() const {
        const std::optional<const Tensor> added(residual);
        const std::optional<const ttnn::prim::LayerNormProgramConfig> program(config);
        return ttnn::layer_norm(input, 1e-5F, std::nullopt, std::nullopt, added, memory, program,
                                std::nullopt, std::nullopt);
    }
};

void test_norms() {
    const MemoryConfig line = sharded(kWidth, 32, 64, 2, 1);
    Norm with_residual;
    with_residual.residual = placed(Shape({32, 128}), line);
    check_rows<Norm>(
        with_residual,
        {
            {"Input and residual shapes must match",
             [&](Norm& n) {
                 n.residual = placed(Shape({64, 128}), sharded(kWidth, 64, 64, 2, 1));
             }},
            {"Both a and b should have the same memory config",
             [](Norm& n) { n.residual = placed(Shape({32, 128})); }},
            {"Both a and b should have the same memory config",
             [](Norm& n) { n.residual = placed(Shape({32, 128}), sharded(kWidth, 32, 32, 4, 1)); }},
            {"Both a and b should have the same memory config",
             [](Norm& n) { n.residual = placed(Shape({32, 128}), sharded(kWidth, 32, 64, 1, 2)); }},
        });
    check_rows<Norm>(
        {},
        {
            {"Sharded inputs require sharded outputs.", [](Norm& n) { n.memory = kDRAM; }},
            {"Sharded inputs require sharded outputs.",
             [](Norm& n) { n.memory = sharded(kBlock, 32, 64, 2, 1); }},
            {"Input and output buffer types must match",
             [](Norm& n) {
                 n.memory =
                     sharded(kWidth, 32, 64, 2, 1, ShardOrientation::ROW_MAJOR, BufferType::DRAM);
             }},
            {"Sharded layernorm does not support non-rectangular core grids. The shard spec "
             "grid has 3 cores but its bounding box spans 4",
             [](Norm& n) {
                 const CoreRangeSet cores(
                     std::vector<CoreRange>{CoreRange({0, 0}, {1, 0}), CoreRange({0, 1}, {0, 1})});
                 const ShardSpec shards(cores, std::array<std::uint32_t, 2>{32, 64},
                                        ShardOrientation::ROW_MAJOR);
                 n.input = placed(Shape({32, 192}), MemoryConfig(kWidth, BufferType::L1, shards));
             }},
            {"Output memory config must be sharded for inplace operation",
             [](Norm& n) {
                 n.input = placed(Shape({32, 128}));
                 n.config.inplace = true;
             }},
            {"block_w must be divisible by subblock_w.", [](Norm& n) { n.config.subblock_w = 3; }},
            {"Bounding box dimensions must be smaller than compute grid size",
             [](Norm& n) { n.config.compute_with_storage_grid_size = {1, 1}; }},
            {"Block height * tile_height must match shard shape[0]",
             [](Norm& n) { n.config.block_h = 2; }},
            {"block_w (2) must equal to K (in tiles) / num_cores (1)",
             [](Norm& n) {
                 n.input = placed(Shape({32, 128}), sharded(kWidth, 32, 64, 4, 1));
                 n.config = Norm::of({4, 1}, 1);
             }},
        });
    for (const auto orientation : {ShardOrientation::ROW_MAJOR, kColumnMajor}) {
        const auto blocks = [&](std::uint32_t height, std::uint32_t width, std::size_t columns,
                                std::size_t rows) {
            return placed(Shape({128, 128}),
                          sharded(kBlock, height, width, columns, rows, orientation));
        };
        const bool by_rows = orientation == ShardOrientation::ROW_MAJOR;
        Norm square;
        square.input = blocks(64, 64, 2, 2);
        square.config = Norm::of({2, 2}, 2);
        check_rows<Norm>(square,
                         {
                             {"block_h (2) must equal to M (in tiles) / num_cores (1)",
                              [&](Norm& n) {
                                  n.input = by_rows ? blocks(64, 64, 2, 4) : blocks(64, 64, 4, 2);
                                  n.config = Norm::of({4, 4}, 2);
                              }},
                             {"block_w (2) must equal to K (in tiles) / num_cores (1)",
                              [&](Norm& n) {
                                  n.input = by_rows ? blocks(64, 64, 4, 2) : blocks(64, 64, 2, 4);
                                  n.config = Norm::of({4, 4}, 2);
                              }},
                         });
    }
}

struct Softmax {
    Tensor input = placed(Shape({1, 1, 64, 64}), sharded(kHeight, 32, 64, 2, 1));
    Tensor mask = placed(Shape({1, 1, 32, 64}));
    ttnn::SoftmaxShardedMultiCoreProgramConfig config = standard();
    bool causal = false;

    static ttnn::SoftmaxShardedMultiCoreProgramConfig standard() {
        ttnn::SoftmaxShardedMultiCoreProgramConfig found;
        found.compute_with_storage_grid_size = {2, 1};
        found.subblock_w = found.block_h = 1;
        found.block_w = 2;
        return found;
    }

    Tensor operator()() const {
        return ttnn::scale_mask_softmax_in_place(input, 1.0F, mask, config, causal);
    }
};

void test_softmax() {
    const MemoryConfig tall = sharded(kHeight, 32, 64, 2, 1);
    check_rows<Softmax>(
        {}, {
                {"Sharded mask must have TILE layout",
                 [&](Softmax& s) {
                     s.mask = placed(Shape({1, 1, 64, 64}), tall, DataType::BFLOAT16, kRows);
                 }},
                {"Sharded mask shape must match input tensor shape",
                 [](Softmax& s) {
                     s.mask = placed(Shape({1, 1, 32, 64}), sharded(kHeight, 32, 64, 1, 1));
                 }},
                {"Non-sharded mask shape must match expected shape",
                 [](Softmax& s) {
                     s.mask = placed(Shape({1, 1, 4, 32}), kDRAM, DataType::BFLOAT16, kRows);
                 }},
                {"output_mem_config must have a shard_spec",
                 [](Softmax& s) { s.input = placed(Shape({1, 1, 64, 64})); }},
                {"output_mem_config must have a shard_spec",
                 [](Softmax& s) {
                     s.input = placed(Shape({1, 1, 64, 64}));
                     s.causal = true;
                     s.mask = placed(Shape({1, 1, 64, 64}));
                 }},
                {"shard width must equal to input tensor shape[3]!",
                 [](Softmax& s) {
                     s.input = placed(Shape({1, 1, 64, 128}), sharded(kBlock, 32, 64, 2, 2));
                     s.mask = placed(Shape({1, 1, 32, 128}));
                 }},
                {"block_h (2) must match the shard height in tiles (1)",
                 [](Softmax& s) { s.config.block_h = 2; }},
                {"block_w (1) must match the shard width in tiles (2)",
                 [](Softmax& s) { s.config.block_w = 1; }},
            });
}

struct Rotary {
    Tensor input = placed(Shape({1, 2, 32, 64}));
    Tensor cosines = placed(Shape({1, 1, 32, 64}));
    Tensor sines = placed(Shape({1, 1, 32, 64}));
    std::optional<MemoryConfig> memory;

    Tensor operator()() const {
        return ttnn::experimental::rotary_embedding(input, cosines, sines, std::nullopt, memory,
                                                    std::nullopt);
    }
};

void test_rotary() {
    const MemoryConfig tall = sharded(kHeight, 32, 64, 2, 1);
    const MemoryConfig wide = sharded(kWidth, 64, 32, 2, 1);
    check_rows<Rotary>(
        {}, {
                {"Cos and Sin dims must match",
                 [](Rotary& r) { r.sines = placed(Shape({1, 1, 64, 64})); }},
                {"Cosine cache dimensions must match input dimensions. Expected (1, 1, 64)",
                 [](Rotary& r) { r.cosines = r.sines = placed(Shape({2, 1, 32, 64})); }},
                {"Cosine cache dimensions must match input dimensions. Expected (1, 1, 64)",
                 [](Rotary& r) { r.cosines = r.sines = placed(Shape({1, 2, 32, 64})); }},
                {"Cosine cache dimensions must match input dimensions. Expected (1, 1, 64)",
                 [](Rotary& r) { r.cosines = r.sines = placed(Shape({1, 1, 32, 128})); }},
                {"Input X dimension (96) must be divisible by 64 for tiling.",
                 [](Rotary& r) {
                     r.input = placed(Shape({1, 2, 32, 96}));
                     r.cosines = r.sines = placed(Shape({1, 1, 32, 96}));
                 }},
                {"Output memory config layout must not be WIDTH_SHARDED",
                 [&](Rotary& r) { r.memory = wide; }},
                {"Output memory config layout must not be WIDTH_SHARDED",
                 [&](Rotary& r) {
                     r.input = placed(Shape({1, 2, 32, 64}), tall);
                     r.memory = wide;
                 }},
                {"Input tensor height (96) must be divisible by its shards' height (64)",
                 [](Rotary& r) {
                     r.input = placed(Shape({1, 3, 32, 64}), sharded(kHeight, 64, 64, 2, 1));
                 }},
            });
}

struct Llama {
    Tensor input = placed(Shape({1, 2, 32, 64}));
    Tensor cosines = placed(Shape({1, 1, 32, 64}));
    Tensor sines = placed(Shape({1, 1, 32, 64}));
    Tensor matrix = placed(Shape({1, 1, 32, 32}));
    bool decode = false;
    std::optional<MemoryConfig> memory;

    Tensor operator()() const {
        return ttnn::experimental::rotary_embedding_llama(input, cosines, sines, matrix, decode,
                                                          memory, std::nullopt);
    }

    /// Of one token of four users, each on a core of its own.
    static Llama of_users() {
        const MemoryConfig users = sharded(kHeight, 32, 64, 4, 1);
        const Tensor table = placed(Shape({1, 4, 1, 64}), users);
        return {placed(Shape({1, 4, 8, 64}), users),
                table,
                table,
                placed(Shape({1, 1, 128, 32}), sharded(kHeight, 32, 32, 4, 1)),
                true,
                users};
    }
};

void test_llama() {
    check_rows<Llama>(
        {},
        {
            {"Unsupported input shape",
             [](Llama& r) {
                 r.input = placed(Shape({1, 2, 32, 288}));
                 r.cosines = r.sines = placed(Shape({1, 1, 32, 288}));
             }},
            {"Unsupported input shape",
             [](Llama& r) { r.cosines = r.sines = placed(Shape({1, 1, 32, 128})); }},
            {"Unsupported input shape", [](Llama& r) { r.input = placed(Shape({2, 2, 32, 64})); }},
            {"Input tensor and output tensor must have same memory layout",
             [](Llama& r) { r.memory = sharded(kHeight, 32, 64, 2, 1); }},
            {"Cos and Sin dims must match",
             [](Llama& r) { r.sines = placed(Shape({1, 1, 64, 64})); }},
            {"Input tensor must be interleaved in prefill mode",
             [](Llama& r) {
                 r.input = placed(Shape({1, 2, 32, 64}), sharded(kHeight, 32, 64, 2, 1));
             }},
            {"Cos and Sin must have 1 head or those of the input",
             [](Llama& r) { r.cosines = r.sines = placed(Shape({1, 3, 32, 64})); }},
        });
    const Llama users = Llama::of_users();
    check_rows<Llama>(
        users,
        {
            {"cos tensor for RoPE must be HEIGHT_SHARDED.",
             [](Llama& r) { r.cosines = placed(Shape({1, 4, 1, 64})); }},
            {"cos tensor for RoPE must be HEIGHT_SHARDED.",
             [](Llama& r) { r.sines = placed(Shape({1, 4, 1, 64})); }},
            {"transformation matrix for RoPE must be HEIGHT_SHARDED.",
             [](Llama& r) { r.matrix = placed(Shape({1, 1, 32, 32})); }},
            {"Transformation matrix must have 3rd and 4th dim equal to TILE_HEIGHT",
             [](Llama& r) {
                 r.matrix = placed(Shape({1, 1, 128, 32}), sharded(kHeight, 64, 32, 2, 1));
             }},
            {"Cos and Sin must have the same batch size as the input",
             [](Llama& r) {
                 r.cosines = r.sines = placed(Shape({1, 8, 1, 64}), sharded(kHeight, 32, 64, 8, 1));
             }},
            {"In decode mode, RoPE only supports n_heads (shard_shape[0]) less than equal to",
             [](Llama& r) {
                 r.cosines = r.sines = placed(Shape({1, 4, 1, 64}), sharded(kHeight, 64, 64, 2, 1));
             }},
            {"In decode mode, RoPE is parallelized over batch dimension",
             [](Llama& r) {
                 r.input = placed(Shape({1, 80, 8, 64}), sharded(kHeight, 64, 64, 8, 5));
                 r.memory = sharded(kHeight, 64, 64, 8, 5);
             }},
            {"Unsupported input shape",
             [](Llama& r) {
                 r.input = placed(Shape({2, 4, 8, 64}), sharded(kHeight, 32, 64, 8, 1));
             }},
        });
}

struct DecodeHeads {
    Shape shape{{1, 1, 8, 128}};
    MemoryConfig memory = sharded(kWidth, 32, 32, 4, 1);
    std::uint32_t queries = 2;
    bool overlap = true;
    std::optional<Tensor> offset;
    std::optional<std::uint32_t> users;
    std::optional<MemoryConfig> output;

    Tensor operator()() const {
        std::optional<std::array<Tensor, 3>> nothing;
        const std::optional<const Tensor> at(offset);
        return std::get<0>(ttnn::experimental::nlp_create_qkv_heads_decode(
            placed(shape, memory), queries, 1, nothing, overlap, at, users, output));
    }
};

void test_decode_heads() {
    check_rows<DecodeHeads>(
        {}, {
                {"Shard height 64 must match physical height 32 for width sharded",
                 [](DecodeHeads& h) { h.memory = sharded(kWidth, 64, 32, 4, 1); }},
                {"Shard orientation must be ROW_MAJOR",
                 [](DecodeHeads& h) { h.memory = sharded(kWidth, 32, 32, 4, 1, kColumnMajor); }},
                {"We don't support partial heads in shards",
                 [](DecodeHeads& h) {
                     h.memory = sharded(kWidth, 32, 64, 2, 1);
                     h.overlap = false;
                 }},
                {"nlp_create_qkv_heads_decode: preallocated outputs and batch slices",
                 [](DecodeHeads& h) { h.offset = numbers(Shape({1})); }},
                {"nlp_create_qkv_heads_decode: preallocated outputs and batch slices",
                 [](DecodeHeads& h) { h.users = 8; }},
                {"Output tensor must be height sharded",
                 [](DecodeHeads& h) { h.output = sharded(kWidth, 32, 32, 8, 1); }},
                {"Grid Size is 4. Need at least 8 cores for decode",
                 [](DecodeHeads& h) { h.output = sharded(kHeight, 32, 32, 4, 1); }},
                {"Input shape 128 must be divisible by num_heads + 2*num_kv_heads = 5",
                 [](DecodeHeads& h) { h.queries = 3; }},
            });
}

void test_joining() {
    const auto join = [](const Shape& shape, const MemoryConfig& memory, std::uint32_t heads) {
        return ttnn::experimental::nlp_concat_heads_decode(
            placed(shape, memory), heads, std::nullopt, std::nullopt, std::nullopt);
    };
    accepted([&] { return join(Shape({1, 4, 32, 64}), sharded(kHeight, 32, 64, 4, 1), 8); });
    refused("seqlen=1 for decode",
            [&] { return join(Shape({2, 4, 32, 64}), sharded(kHeight, 32, 64, 8, 1), 8); });
    refused("currently only support less than 32 users",
            [&] { return join(Shape({1, 40, 32, 64}), sharded(kHeight, 32, 64, 8, 5), 8); });
    refused("The input has 32 heads, 33 are requested",
            [&] { return join(Shape({1, 4, 32, 64}), sharded(kHeight, 32, 64, 4, 1), 33); });
    refused("Input tensor memory layout must be HEIGHT_SHARDED",
            [&] { return join(Shape({1, 4, 32, 64}), sharded(kWidth, 128, 32, 2, 1), 8); });
    const auto concatenate = [](const Shape& shape, const MemoryConfig& memory) {
        return ttnn::transformer::concatenate_heads(
            placed(shape, memory), MemoryConfig(kBlock, BufferType::L1, std::nullopt));
    };
    refused("Input tensor shard height (32) must be divisible by padded height (64)",
            [&] { return concatenate(Shape({1, 4, 64, 64}), sharded(kHeight, 32, 64, 8, 1)); });
    refused("Input tensor padded height (4) must be divisible by shard height",
            [&] { return concatenate(Shape({1, 4, 32, 64}), sharded(kHeight, 96, 64, 2, 1)); });
    refused("The key and value tensor must have the shape", [&] {
        return ttnn::transformer::split_query_key_value_and_split_heads(
            placed(Shape({1, 32, 64})), placed(Shape({1, 32, 96})), 2, 2, false, std::nullopt);
    });
}

struct PagedUpdate {
    Tensor cache = placed(Shape({8, 1, 64, 64}));
    Tensor input = placed(Shape({1, 8, 32, 64}), sharded(kHeight, 32, 64, 8, 1));
    std::uint32_t offset = 0;

    Tensor operator()() const {
        const std::optional<const Tensor> at(numbers(Shape({8})));
        return ttnn::experimental::paged_update_cache(
            cache, input, {}, at, std::nullopt, std::nullopt, offset, std::nullopt, std::nullopt);
    }
};

void test_caches() {
    check_rows<PagedUpdate>(
        {}, {
                {"The input must be (1, users, at least 1 heads, 64)",
                 [](PagedUpdate& u) {
                     u.input = placed(Shape({2, 8, 32, 64}), sharded(kHeight, 32, 64, 8, 2));
                 }},
                {"The input must be (1, users, at least 1 heads, 64)",
                 [](PagedUpdate& u) {
                     u.input = placed(Shape({1, 8, 32, 32}), sharded(kHeight, 32, 32, 8, 1));
                 }},
                {"The cache holds 4 users, the input has 8",
                 [](PagedUpdate& u) { u.cache = placed(Shape({4, 1, 64, 64})); }},
                {"Expect input_tensor to NOT have memory layout WIDTH SHARDED",
                 [](PagedUpdate& u) {
                     u.input = placed(Shape({1, 8, 32, 64}), sharded(kWidth, 256, 32, 2, 1));
                 }},
                {"batch_offset must be 0, got 1", [](PagedUpdate& u) { u.offset = 1; }},
            });
    const auto fill = [](std::uint32_t user, const std::optional<const Tensor>& of) {
        return ttnn::experimental::paged_fill_cache(
            placed(Shape({8, 2, 32, 64})), placed(Shape({1, 2, 64, 64})), numbers(Shape({4, 2})),
            of, user, std::nullopt, std::nullopt);
    };
    accepted([&] { return fill(3, std::nullopt); });
    refused("Position 0 of user 4 is outside of a page table of 4 users",
            [&] { return fill(4, std::nullopt); });
    refused("batch_idx_tensor must have one element, got Shape([2])",
            [&] { return fill(0, numbers(Shape({2}))); });
    refused("The input has tokens of 32 users, 40 from user 0 on are requested", [] {
        return ttnn::update_cache(placed(Shape({40, 1, 32, 64})), placed(Shape({1, 1, 32, 64})), 0,
                                  0, std::nullopt);
    });
}

void test_embedding() {
    const auto embed = [](const Shape& indices, Layout layout, const MemoryConfig& memory) {
        return ttnn::embedding(placed(indices, kDRAM, DataType::UINT32, kRows),
                               placed(Shape({10, 96}), kDRAM, DataType::BFLOAT16, kRows),
                               std::nullopt, layout, ttnn::prim::EmbeddingsType::GENERIC,
                               std::nullopt, memory, std::nullopt);
    };
    accepted([&] { return embed(Shape({1, 64}), Layout::TILE, kDRAM); });
    refused("Sharded memory config must have a shard spec",
            [&] { return embed(Shape({1, 64}), Layout::TILE, kBareHeight); });
    refused("Embedding only supports height sharded Row Major outputs",
            [&] { return embed(Shape({1, 64}), kRows, sharded(kWidth, 64, 48, 2, 1)); });
    refused("ttnn.embedding drops the middle dimensions of its indices",
            [&] { return embed(Shape({1, 2, 1, 32}), Layout::TILE, kDRAM); });
}

}  // namespace

int main() {
    test_norms();
    test_softmax();
    test_rotary();
    test_llama();
    test_decode_heads();
    test_joining();
    test_caches();
    test_embedding();
    return 0;
}
