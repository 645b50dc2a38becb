// Calls whose operands violate one condition of tt-metal 0.70.1 each: sampling, attention,
// concatenation, copies, heads, elementwise ops, reductions and windows.

#include "conditions_testing.hpp"
#include "ttnn/operations/core/core.hpp"
#include "ttnn/operations/data_movement/clone/clone.hpp"
#include "ttnn/operations/data_movement/concat/concat.hpp"
#include "ttnn/operations/data_movement/gather/gather.hpp"
#include "ttnn/operations/data_movement/slice/slice.hpp"
#include "ttnn/operations/eltwise/binary/binary_composite.hpp"
#include "ttnn/operations/eltwise/unary/unary.hpp"
#include "ttnn/operations/experimental/transformer/nlp_create_qkv_heads/nlp_create_qkv_heads.hpp"
#include "ttnn/operations/pool/upsample/upsample.hpp"
#include "ttnn/operations/reduction/argmax/argmax.hpp"
#include "ttnn/operations/reduction/generic/generic_reductions.hpp"
#include "ttnn/operations/reduction/sampling/sampling.hpp"
#include "ttnn/operations/transformer/sdpa/sdpa.hpp"
#include "ttnn/operations/transformer/sdpa_decode/sdpa_decode.hpp"

using namespace conditions_testing;

namespace {

using ttnn::operations::transformer::SDPAProgramConfig;

constexpr auto kRows = Layout::ROW_MAJOR;

Tensor unsigned_numbers(const Shape& shape, const MemoryConfig& memory = kDRAM) {
    return placed(shape, memory, DataType::UINT32, kRows);
}

Tensor row_of_floats(const Shape& shape, const MemoryConfig& memory = kDRAM) {
    return placed(shape, memory, DataType::BFLOAT16, kRows);
}

struct Sampling {
    Tensor values = placed(Shape({1, 1, 32, 64}));
    Tensor indices = numbers(Shape({1, 1, 32, 64}));
    Tensor k = unsigned_numbers(Shape({32}));
    Tensor p = row_of_floats(Shape({32}));
    Tensor temp = row_of_floats(Shape({32}));
    std::optional<CoreRangeSet> cores;
    std::optional<Tensor> output;

    Tensor operator()() const {
        return ttnn::sampling(values, indices, k, p, temp, 1, cores, output);
    }
};

void test_sampling() {
    const MemoryConfig one = sharded(kHeight, 32, 64, 1, 1);
    check_rows<Sampling>(
        {},
        {
            {"Only INTERLEAVED memory layout is supported for inputs!",
             [&](Sampling& s) { s.values = placed(Shape({1, 1, 32, 64}), one); }},
            {"Only INTERLEAVED memory layout is supported for inputs!",
             [&](Sampling& s) { s.indices = numbers(Shape({1, 1, 32, 64}), one); }},
            {"Only BFLOAT16 is supported for inputs",
             [](Sampling& s) {
                 s.values = placed(Shape({1, 1, 32, 64}), kDRAM, DataType::FLOAT32);
             }},
            {"Only TILE_LAYOUT is supported for inputs",
             [](Sampling& s) { s.values = row_of_floats(Shape({1, 1, 32, 64})); }},
            {"Only UINT32 & INT32 dtypes are supported for input indices",
             [](Sampling& s) { s.indices = row_of_floats(Shape({1, 1, 32, 64})); }},
            {"Only ROW_MAJOR is supported for input indices",
             [](Sampling& s) {
                 s.indices = placed(Shape({1, 1, 32, 64}), kDRAM, DataType::INT32);
             }},
            {"Input values and indices must have the same shape",
             [](Sampling& s) { s.indices = numbers(Shape({1, 1, 32, 32})); }},
            {"Input must have 32 users",
             [](Sampling& s) {
                 s.values = placed(Shape({1, 1, 64, 64}));
                 s.indices = numbers(Shape({1, 1, 64, 64}));
             }},
            {"Input inner dim (48) must be non-zero and divisible by 32",
             [](Sampling& s) {
                 s.values = placed(Shape({1, 1, 32, 48}));
                 s.indices = numbers(Shape({1, 1, 32, 48}));
             }},
            {"Subcore grid expects 32 cores, but found 4!",
             [](Sampling& s) { s.cores = core_rectangle(2, 2); }},
            {"Only UINT32 & INT32 dtypes are supported for outputs",
             [](Sampling& s) { s.output = row_of_floats(Shape({1, 1, 1, 32})); }},
            {"Only INTERLEAVED memory layout is supported for outputs!",
             [](Sampling& s) {
                 s.output = numbers(Shape({1, 1, 1, 32}), sharded(kHeight, 1, 32, 1, 1));
             }},
            {"k must have shape [32]", [](Sampling& s) { s.k = unsigned_numbers(Shape({16})); }},
            {"p must have shape [32]", [](Sampling& s) { s.p = row_of_floats(Shape({16})); }},
            {"temp must have shape [32]", [](Sampling& s) { s.temp = row_of_floats(Shape({16})); }},
            {"Only ROW_MAJOR layout is supported for k",
             [](Sampling& s) { s.k = placed(Shape({32}), kDRAM, DataType::UINT32); }},
            {"Only ROW_MAJOR layout is supported for p",
             [](Sampling& s) { s.p = placed(Shape({32})); }},
            {"Only ROW_MAJOR layout is supported for temp",
             [](Sampling& s) { s.temp = placed(Shape({32})); }},
        });
}

SDPAProgramConfig chunks(std::size_t queries, std::size_t keys) {
    return {device()->compute_with_storage_grid_size(), std::nullopt, queries, keys, std::nullopt};
}

struct Prefill {
    Tensor q = placed(Shape({1, 2, 64, 64}));
    Tensor k = placed(Shape({1, 2, 64, 64}));
    Tensor v = placed(Shape({1, 2, 64, 64}));
    std::optional<Tensor> mask;
    std::optional<SDPAProgramConfig> config = chunks(32, 32);
    std::optional<Tensor> sink;

    Tensor operator()() const {
        return ttnn::transformer::scaled_dot_product_attention(q, k, v, mask, false, std::nullopt,
                                                               std::nullopt, std::nullopt, config,
                                                               std::nullopt, sink);
    }
};

struct Chunk {
    Tensor q = placed(Shape({1, 2, 64, 64}));
    Tensor k = placed(Shape({4, 2, 64, 64}));
    Tensor v = placed(Shape({4, 2, 64, 64}));
    Tensor table = numbers(Shape({1, 4}));
    std::int64_t start = 64;
    std::optional<Tensor> start_tensor;
    SDPAProgramConfig config = chunks(32, 64);

    Tensor operator()() const {
        using ttnn::transformer::chunked_scaled_dot_product_attention;
        return start_tensor ? chunked_scaled_dot_product_attention(
                                  q, k, v, table, *start_tensor, std::nullopt, std::nullopt, config)
                            : chunked_scaled_dot_product_attention(
                                  q, k, v, table, start, std::nullopt, std::nullopt, config);
    }
};

void test_prefill() {
    check_rows<Prefill>(
        {},
        {
            {"When mask is provided to SDPA, the tensor must be on device",
             [](Prefill& s) { s.mask = ttnn::from_device(placed(Shape({1, 1, 64, 64}))); }},
            {"K and V sequence length must match",
             [](Prefill& s) { s.v = placed(Shape({1, 2, 32, 64})); }},
            {"Q num_heads must be >= K num_heads and divisible by K num_heads. Got Q: 2, K: 4",
             [](Prefill& s) { s.k = s.v = placed(Shape({1, 4, 64, 64})); }},
            {"k_chunk_size must be divisible by TILE_SIZE",
             [](Prefill& s) { s.config = chunks(32, 48); }},
            {"Provided grid must not contain more cores than the device",
             [](Prefill& s) { s.config->compute_with_storage_grid_size.x += 1; }},
            {"Attention sink must be tilized",
             [](Prefill& s) { s.sink = row_of_floats(Shape({1, 2, 1, 1})); }},
            {"Attention sink must be in BF16, BFP8, or BFP4 dataformat",
             [](Prefill& s) { s.sink = placed(Shape({1, 2, 1, 1}), kDRAM, DataType::FLOAT32); }},
            {"Attention sink num_heads must match Q num_heads. Got sink: 4, Q: 2",
             [](Prefill& s) { s.sink = placed(Shape({1, 4, 1, 1})); }},
        });
    check_rows<Chunk>({},
                      {
                          {"chunk_start_idx must be non-negative", [](Chunk& s) { s.start = -64; }},
                          {"chunk_start_idx must be a multiple of q_chunk_size",
                           [](Chunk& s) { s.config = chunks(128, 64); }},
                          {"chunk_start_idx tensor must be int32",
                           [](Chunk& s) { s.start_tensor = unsigned_numbers(Shape({1})); }},
                          {"chunk_start_idx tensor must have shape [1]",
                           [](Chunk& s) { s.start_tensor = numbers(Shape({2})); }},
                          {"User 0 needs 2 pages for 128 keys, its page table has 1",
                           [](Chunk& s) { s.table = numbers(Shape({1, 1})); }},
                          {"K page size must match V page size",
                           [](Chunk& s) { s.v = placed(Shape({4, 2, 32, 64})); }},
                          {"Page table batch size must match input batch size",
                           [](Chunk& s) { s.table = numbers(Shape({2, 4})); }},
                      });
}

struct Decode {
    Tensor q = placed(Shape({1, 8, 32, 64}));
    Tensor k = placed(Shape({8, 1, 64, 64}));
    Tensor v = placed(Shape({8, 1, 64, 64}));
    std::optional<Tensor> mask;
    std::optional<Tensor> sink;
    std::optional<MemoryConfig> memory;
    std::optional<SDPAProgramConfig> config;

    Tensor operator()() const {
        const std::optional<const Tensor> added(mask);
        const std::optional<const Tensor> logits(sink);
        return ttnn::transformer::scaled_dot_product_attention_decode(
            q, k, v, !mask, added, std::vector<std::uint32_t>(8, 3), std::nullopt, logits,
            std::nullopt, std::nullopt, memory, config);
    }
};

struct PagedDecode {
    Tensor q = placed(Shape({1, 2, 32, 64}));
    Tensor pages = placed(Shape({8, 1, 32, 64}));
    Tensor table = numbers(Shape({2, 4}));
    bool causal = true;
    std::optional<Tensor> positions = numbers(Shape({2}));
    std::optional<SDPAProgramConfig> config;

    Tensor operator()() const {
        const std::optional<const Tensor> at(positions);
        return ttnn::transformer::paged_scaled_dot_product_attention_decode(
            q, pages, pages, table, causal, std::nullopt, at, std::nullopt, std::nullopt,
            std::nullopt, std::nullopt, config);
    }
};

void test_decode() {
    const auto two_heads = [](Decode& s) { s.k = s.v = placed(Shape({8, 2, 64, 64})); };
    check_rows<Decode>(
        {}, {
                {"Expect same sequence length in mask as in K, got 32 and 64",
                 [](Decode& s) { s.mask = placed(Shape({8, 1, 32, 32})); }},
                {"K and V tensors must have the same sequence length",
                 [](Decode& s) { s.v = placed(Shape({8, 1, 32, 64})); }},
                {"Flash decode expects K and V to have same number of heads",
                 [](Decode& s) { s.v = placed(Shape({8, 2, 64, 64})); }},
                {"Sharded output not supported for GQA",
                 [&](Decode& s) {
                     two_heads(s);
                     s.memory = sharded(kHeight, 32, 64, 8, 1);
                 }},
                {"GQA expects BFLOAT16 input tensor",
                 [&](Decode& s) {
                     two_heads(s);
                     s.q = placed(Shape({1, 8, 32, 64}), kDRAM, DataType::BFLOAT8_B);
                 }},
                {"Attention sink must have 2 dimensions",
                 [](Decode& s) { s.sink = placed(Shape({1, 32, 32})); }},
                {"Attention sink must have the same padded num heads as Q but got 16",
                 [](Decode& s) { s.sink = placed(Shape({16, 32})); }},
                {"Attention sink must by a BF16 tensor",
                 [](Decode& s) { s.sink = placed(Shape({32, 32}), kDRAM, DataType::FLOAT32); }},
                {"Attention sink must be in TILE layout",
                 [](Decode& s) { s.sink = row_of_floats(Shape({32, 32})); }},
                {"max_cores_per_head_batch must be > 0",
                 [](Decode& s) {
                     s.config = chunks(32, 32);
                     s.config->max_cores_per_head_batch = 0;
                 }},
                {"User provided k_chunk_size must be power of 2, got: 48",
                 [](Decode& s) { s.config = chunks(32, 48); }},
                {"User provided k_chunk_size must be multiple of 32, got: 16",
                 [](Decode& s) { s.config = chunks(32, 16); }},
            });
    check_rows<PagedDecode>(
        {}, {
                {"Must have cur_pos tensor for paged attention in causal mode",
                 [](PagedDecode& s) { s.positions.reset(); }},
                {"Expect cur_pos to be INT32",
                 [](PagedDecode& s) { s.positions = unsigned_numbers(Shape({2})); }},
                {"Expect cur_pos to be ROW_MAJOR",
                 [](PagedDecode& s) { s.positions = placed(Shape({2}), kDRAM, DataType::INT32); }},
                {"cur_pos must have batch size equal to Q, got 3 and 2",
                 [](PagedDecode& s) { s.positions = numbers(Shape({3})); }},
                {"Page table batch size must match input batch size",
                 [](PagedDecode& s) { s.table = numbers(Shape({3, 4})); }},
                {"Must provide k_chunk_size if paged and non-causal!",
                 [](PagedDecode& s) { s.causal = false; }},
            });
}

struct Joined {
    std::vector<Tensor> tensors;
    int dim = 1;
    std::optional<MemoryConfig> memory;

    Tensor operator()() const { return ttnn::concat(tensors, dim, memory); }
};

void test_joining() {
    const Shape shape({64, 64});
    const auto make = [&](const MemoryConfig& memory) { return placed(shape, memory); };
    const MemoryConfig tall = sharded(kHeight, 32, 64, 2, 1);
    const MemoryConfig wide = sharded(kWidth, 64, 32, 2, 1);
    const Joined right{{make(tall), make(tall)}, 1, sharded(kHeight, 32, 128, 2, 1)};
    check_rows<Joined>(
        right, {
                   {"All tensors must be sharded or all must be interleaved",
                    [&](Joined& j) { j.tensors[1] = make(kDRAM); }},
                   {"Sharded tensors must have the same grid.",
                    [&](Joined& j) { j.tensors[1] = make(sharded(kHeight, 32, 64, 1, 2)); }},
                   {"Sharded tensors must have the same memory layout.",
                    [&](Joined& j) { j.tensors[1] = make(wide); }},
                   {"Block sharded inputs are not supported",
                    [&](Joined& j) { j.tensors.assign(2, make(sharded(kBlock, 32, 32, 2, 2))); }},
                   {"Width sharded inputs are not supported for two tensors concat yet",
                    [&](Joined& j) { j.tensors.assign(2, make(wide)); }},
                   {"Cannot concat interleaved inputs into a sharded output",
                    [&](Joined& j) { j.tensors.assign(2, make(kDRAM)); }},
                   {"Sharded output and inputs must have the same grid.",
                    [&](Joined& j) { j.memory = sharded(kHeight, 32, 128, 1, 2); }},
                   {"Only support height concat on width-sharded tensors.",
                    [&](Joined& j) {
                        j.dim = 0;
                        j.memory = sharded(kHeight, 64, 64, 2, 1);
                    }},
                   {"Only support width concat on height-sharded tensors.",
                    [&](Joined& j) {
                        j.tensors.assign(3, make(wide));
                        j.memory = sharded(kWidth, 64, 96, 2, 1);
                    }},
                   {"Only width or height concat on sharded tensors",
                    [&](Joined& j) {
                        j.dim = 0;
                        j.tensors.assign(2, placed(Shape({1, 64, 64}), tall));
                        j.memory = sharded(kHeight, 64, 64, 2, 1);
                    }},
               });
}

void test_copies() {
    const MemoryConfig tall = sharded(kHeight, 32, 64, 2, 1);
    const auto copy = [](const MemoryConfig& from, const MemoryConfig& to) {
        return ttnn::clone(placed(Shape({64, 64}), from), std::nullopt, to, std::nullopt);
    };
    accepted([&] { return copy(tall, tall); });
    refused("Clone: mixed sharded/interleaved layout not currently supported",
            [&] { return copy(tall, kDRAM); });
    refused("Clone: mixed sharded/interleaved layout not currently supported",
            [&] { return copy(kDRAM, tall); });
    refused("Sharded implementation not supported yet", [&] {
        const Tensor at = placed(Shape({64, 64}), kDRAM, DataType::UINT32);
        return ttnn::gather(placed(Shape({64, 64}), tall), 1, at, false, std::nullopt);
    });
    const auto cut = [](const MemoryConfig& from, std::uint32_t step) {
        using Bounds = ttnn::SmallVector<std::uint32_t>;
        return ttnn::slice(placed(Shape({64, 64}), from), Bounds{0, 0}, Bounds{32, 64},
                           Bounds{step, 1});
    };
    accepted([&] { return cut(kDRAM, 1); });
    refused("Strided slice is not supported for sharded tensor", [&] { return cut(tall, 2); });
    refused("ttnn::slice does not support implicit memory_config inheritance for BLOCK_SHARDED",
            [&] { return cut(sharded(kBlock, 32, 32, 2, 2), 1); });
}

struct Heads {
    Shape shape{{1, 1, 32, 256}};
    MemoryConfig memory = sharded(kWidth, 32, 128, 2, 1);
    std::uint32_t queries = 4;
    std::uint32_t keys = 2;
    bool transposed = false;
    MemoryConfig output = sharded(kHeight, 32, 64, 2, 1);

    Tensor operator()() const {
        return std::get<0>(ttnn::experimental::nlp_create_qkv_heads(
            placed(shape, memory), std::nullopt, queries, keys, transposed, output));
    }
};

void test_heads() {
    check_rows<Heads>(
        {}, {
                {"Output memory config must be sharded and not WIDTH_SHARDED",
                 [](Heads& h) { h.output = kDRAM; }},
                {"Input tensor shard orientation must be ROW_MAJOR",
                 [](Heads& h) {
                     h.memory = sharded(kWidth, 32, 128, 2, 1, ShardOrientation::COL_MAJOR);
                 }},
                {"Number of Q heads (3) must be divisible by number of cores (2)",
                 [](Heads& h) {
                     h.shape = Shape({1, 1, 32, 160});
                     h.memory = sharded(kWidth, 32, 96, 2, 1);
                     h.queries = 3;
                     h.keys = 1;
                 }},
                {"Number of KV heads (1) must be divisible by number of cores (2)",
                 [](Heads& h) {
                     h.shape = Shape({1, 1, 32, 192});
                     h.memory = sharded(kWidth, 32, 96, 2, 1);
                     h.keys = 1;
                 }},
                {"Shard spec shape[1] (128) must equal (num_q_heads / num_kv_heads + 2) * head_dim",
                 [](Heads& h) {
                     h.shape = Shape({1, 1, 32, 192});
                     h.queries = 2;
                 }},
                {"Transpose K heads must be false", [](Heads& h) { h.transposed = true; }},
            });
}

void test_elementwise() {
    const Tensor square = placed(Shape({64, 64}));
    const auto divide = [&](const std::string& mode) {
        return ttnn::div(square, square, false, mode);
    };
    accepted([&] { return divide("floor"); });
    refused("Incorrect rounding mode (expected None, 'trunc', or 'floor')",
            [&] { return divide("nearest"); });
    refused("Shape of Output tensor", [&] {
        return ttnn::add(square, square, std::nullopt, std::nullopt, placed(Shape({32, 64})), {},
                         {}, {}, std::nullopt);
    });
    refused("Op chain cannot be empty", [&] { return ttnn::unary_chain(square, {}); });
}

void test_reductions() {
    const MemoryConfig bare(kHeight, BufferType::L1, std::nullopt);
    const MemoryConfig in_dram =
        sharded(kHeight, 32, 64, 2, 1, ShardOrientation::ROW_MAJOR, BufferType::DRAM);
    const auto sum = [](const MemoryConfig& input, const MemoryConfig& output) {
        return ttnn::sum(placed(Shape({64, 64}), input), 1, true, output);
    };
    accepted([&] { return sum(kDRAM, sharded(kHeight, 32, 64, 2, 1)); });
    refused("Sharded memory layout TensorMemoryLayout::HEIGHT_SHARDED requires either",
            [&] { return sum(kDRAM, bare); });
    refused(
        "reduce: sharded output memory layout TensorMemoryLayout::HEIGHT_SHARDED is only "
        "supported with L1 buffers",
        [&] { return sum(kDRAM, in_dram); });
    refused(
        "reduce: sharded input memory layout TensorMemoryLayout::HEIGHT_SHARDED is only "
        "supported with L1 buffers",
        [&] { return sum(in_dram, kDRAM); });
    refused("Multicore argmax only supports ROW_MAJOR layout for inputs", [] {
        return ttnn::argmax(placed(Shape({1, 1, 32, 64})), 3, true, std::nullopt, true, kDRAM,
                            std::nullopt);
    });
}

void test_windows_and_indices() {
    ttnn::DeviceComputeKernelConfig wide;
    wide.fp32_dest_acc_en = true;
    refused("fp32_dest_acc_en as true not supported for upsample bilinear", [&] {
        return ttnn::upsample(
            placed(Shape({1, 8, 8, 32}), sharded(kHeight, 8, 32, 8, 1), DataType::BFLOAT16, kRows),
            2, "bilinear", std::nullopt, wide);
    });
    refused("Sharded implementation not supported yet, got", [] {
        return ttnn::gather(placed(Shape({64, 64})), 1,
                            placed(Shape({64, 64}), kDRAM, DataType::UINT32), false,
                            sharded(kHeight, 32, 64, 2, 1));
    });
}

}  // namespace

int main() {
    test_sampling();
    test_prefill();
    test_decode();
    test_joining();
    test_copies();
    test_heads();
    test_elementwise();
    test_reductions();
    test_windows_and_indices();
    return 0;
}
