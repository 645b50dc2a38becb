// Calls of attention and of caches that break one condition of tt-metal 0.70.1 each.

#include "conditions_testing.hpp"
#include "ttnn/operations/experimental/paged_cache/paged_cache.hpp"
#include "ttnn/operations/kv_cache/kv_cache.hpp"
#include "ttnn/operations/transformer/sdpa/sdpa.hpp"
#include "ttnn/operations/transformer/sdpa_decode/sdpa_decode.hpp"

using namespace conditions_testing;

namespace {

using ttnn::operations::transformer::SDPAProgramConfig;

SDPAProgramConfig chunks(std::size_t queries, std::size_t keys) {
    const auto grid = device()->compute_with_storage_grid_size();
    return {grid, std::nullopt, queries, keys, std::nullopt};
}

void test_prefill() {
    using ttnn::transformer::chunked_scaled_dot_product_attention;
    using ttnn::transformer::scaled_dot_product_attention;
    const Tensor q = placed(Shape({1, 2, 64, 64}));
    const Tensor mask = placed(Shape({1, 1, 64, 64}));
    const auto attend = [&](const Tensor& added, const std::optional<Tensor>& sink) {
        return scaled_dot_product_attention(q, q, q, added, false, std::nullopt, std::nullopt,
                                            std::nullopt, std::nullopt, std::nullopt, sink);
    };
    const Tensor sink = placed(Shape({1, 2, 1, 1}));
    accepted([&] { return attend(mask, sink); });
    refused("When mask is provided to SDPA, it must be in DRAM",
            [&] { return attend(placed(Shape({1, 1, 64, 64}), kL1), std::nullopt); });
    refused("Attention sink must be in DRAM",
            [&] { return attend(mask, placed(Shape({1, 2, 1, 1}), kL1)); });
    const Tensor cache = placed(Shape({4, 2, 64, 64}));
    const auto chunk = [&](std::int64_t start, std::size_t keys) {
        return chunked_scaled_dot_product_attention(q, cache, cache, numbers(Shape({1, 4})), start,
                                                    std::nullopt, std::nullopt, chunks(32, keys));
    };
    accepted([&] { return chunk(64, 64); });
    refused("chunk_start_idx must be a multiple of k_chunk_size", [&] { return chunk(32, 64); });
}

void test_decode_memory() {
    using ttnn::transformer::scaled_dot_product_attention_decode;
    const Shape query({1, 8, 32, 64});
    const Shape cache({8, 1, 64, 64});
    const auto attend = [&](const MemoryConfig& q, const MemoryConfig& k, const MemoryConfig& v,
                            const std::optional<MemoryConfig>& output = std::nullopt) {
        return scaled_dot_product_attention_decode(
            placed(query, q), placed(cache, k), placed(cache, v), true, std::nullopt,
            std::vector<std::uint32_t>(8, 3), std::nullopt, std::nullopt, std::nullopt,
            std::nullopt, output);
    };
    const MemoryConfig heads = sharded(kHeight, 32, 64, 8, 1);
    accepted([&] { return attend(heads, kDRAM, kDRAM, heads); });
    refused("Q tensor memory layout must be HEIGHT_SHARDED when sharded",
            [&] { return attend(sharded(kWidth, 256, 32, 2, 1), kDRAM, kDRAM); });
    refused("Q tensor buffer type must be DRAM", [&] { return attend(kL1, kDRAM, kDRAM); });
    refused("K and V tensor buffer type must be DRAM", [&] { return attend(kDRAM, kL1, kDRAM); });
    refused("K and V tensor buffer type must be DRAM", [&] { return attend(kDRAM, kDRAM, kL1); });
    refused("Output memory config layout must be HEIGHT_SHARDED when sharded",
            [&] { return attend(kDRAM, kDRAM, kDRAM, sharded(kWidth, 256, 32, 2, 1)); });
    refused("V tensor batch size (4) must equal B (8)", [&] {
        return scaled_dot_product_attention_decode(placed(query), placed(cache),
                                                   placed(Shape({4, 1, 64, 64})), true,
                                                   std::nullopt, std::vector<std::uint32_t>(8, 3));
    });
}

void test_decode_sink_and_pages() {
    using ttnn::transformer::paged_scaled_dot_product_attention_decode;
    using ttnn::transformer::scaled_dot_product_attention_decode;
    const Tensor query = placed(Shape({1, 2, 32, 64}));
    const Tensor cache = placed(Shape({2, 1, 64, 64}));
    const auto with_sink = [&](const Shape& shape, const MemoryConfig& memory) {
        return scaled_dot_product_attention_decode(query, cache, cache, true, std::nullopt, {3, 3},
                                                   std::nullopt, placed(shape, memory));
    };
    accepted([&] { return with_sink(Shape({32, 32}), kDRAM); });
    refused("Attention sink must be a single tile wide",
            [&] { return with_sink(Shape({32, 64}), kDRAM); });
    refused("Attention sink must be in DRAM memory",
            [&] { return with_sink(Shape({32, 32}), kL1); });
    const Tensor pages = placed(Shape({8, 1, 32, 64}));
    const auto paged = [&](const Tensor& table, std::size_t chunk) {
        return paged_scaled_dot_product_attention_decode(
            query, pages, pages, table, false, std::nullopt, std::nullopt, std::nullopt,
            std::nullopt, std::nullopt, std::nullopt, chunks(32, chunk));
    };
    refused("K sequence length must be multiple of chunk size",
            [&] { return paged(numbers(Shape({2, 3})), 64); });
    refused("SDPA currently only supports UINT16 datatype for sharded configurations",
            [&] { return paged(numbers(Shape({2, 4}), sharded(kHeight, 2, 4, 1, 1)), 64); });
}

void test_caches() {
    const Tensor cache = placed(Shape({4, 2, 64, 64}));
    const auto fill = [&](const Shape& shape, const MemoryConfig& memory) {
        return ttnn::fill_cache(cache, placed(shape, memory), 1);
    };
    accepted([&] { return fill(Shape({1, 2, 64, 64}), sharded(kHeight, 32, 64, 4, 1)); });
    refused("Seq len must be divisible by shard height",
            [&] { return fill(Shape({1, 2, 32, 64}), sharded(kHeight, 64, 64, 1, 1)); });
    refused("Input tensor height (96) must be divisible by its shards' height (64)", [&] {
        return ttnn::fill_cache(placed(Shape({4, 1, 96, 64})),
                                placed(Shape({1, 1, 96, 64}), sharded(kHeight, 64, 64, 2, 1)), 0);
    });
    refused("Input tensor shard width (32) must equal padded width (64)",
            [&] { return fill(Shape({1, 2, 64, 64}), sharded(kBlock, 32, 32, 2, 4)); });
    refused("Input tensor memory layout must not be WIDTH_SHARDED",
            [&] { return fill(Shape({1, 2, 64, 64}), sharded(kWidth, 128, 32, 2, 1)); });
    refused("Cache tensor memory layout must be INTERLEAVED", [&] {
        const Tensor placed_cache = placed(Shape({4, 2, 64, 64}), sharded(kHeight, 64, 64, 8, 1));
        return ttnn::fill_cache(placed_cache, placed(Shape({1, 2, 64, 64})), 1);
    });
    refused("Batch offset must be 0 when cache tensor batch size >= 32", [&] {
        return ttnn::update_cache(placed(Shape({40, 1, 32, 64})), placed(Shape({1, 1, 64, 64})), 0,
                                  1, std::nullopt);
    });
}

/// A valid call of paged_update_cache, of which one part at a time is changed.
struct PagedUpdate {
    Tensor cache = placed(Shape({8, 1, 64, 64}));
    Tensor input = placed(Shape({1, 8, 32, 64}), sharded(kHeight, 32, 64, 8, 1));
    std::vector<std::uint32_t> list;
    std::optional<Tensor> positions = numbers(Shape({8}));
    std::optional<Tensor> pages;

    Tensor operator()() const {
        const std::optional<const Tensor> at(positions);
        const std::optional<const Tensor> table(pages);
        return ttnn::experimental::paged_update_cache(cache, input, list, at, std::nullopt, table,
                                                      0, std::nullopt, std::nullopt);
    }
};

void test_paged_updates() {
    accepted(PagedUpdate());
    PagedUpdate call;
    call.cache = placed(Shape({8, 1, 64, 64}), sharded(kHeight, 64, 64, 8, 1));
    refused("Only interleaved cache is supported", call);
    call = {};
    call.input =
        placed(Shape({1, 8, 32, 64}), sharded(kHeight, 32, 64, 8, 1, ShardOrientation::COL_MAJOR));
    refused("Only ROW_MAJOR sharding is supported", call);
    call = {};
    call.positions = numbers(Shape({8}), kL1);
    refused("Expect update_idxs to have buffer type DRAM", call);
    call = {};
    call.pages = numbers(Shape({8, 2}));
    accepted(call);
    call.pages = numbers(Shape({8, 9}));
    refused("max_num_blocks_per_seq must be less than max_num_blocks", call);
    call.pages = numbers(Shape({4, 2}));
    refused("Batch size between page_table and input_tensor must match", call);
    call.pages = numbers(Shape({8, 4}), sharded(kHeight, 8, 4, 1, 1));
    refused("Expect page_table_tensor to have memory layout INTERLEAVED", call);
    call.pages = numbers(Shape({8, 2}));
    call.positions.reset();
    call.list.assign(8, 0);
    refused("Paged cache requires update_idxs tensor", call);
}

void test_paged_fills() {
    const Tensor cache = placed(Shape({8, 2, 32, 64}));
    const auto fill = [&](const MemoryConfig& memory, const std::optional<const Tensor>& user) {
        return ttnn::experimental::paged_fill_cache(cache, placed(Shape({1, 2, 64, 64}), memory),
                                                    numbers(Shape({4, 2})), user, 1, std::nullopt,
                                                    std::nullopt);
    };
    accepted([&] { return fill(kDRAM, numbers(Shape({1}))); });
    refused("Expect input_tensor to have memory layout INTERLEAVED",
            [&] { return fill(sharded(kHeight, 32, 64, 4, 1), std::nullopt); });
    refused("Batch idx tensor must be an integer type",
            [&] { return fill(kDRAM, placed(Shape({1}), kDRAM, DataType::BFLOAT16)); });
}

}  // namespace

int main() {
    test_prefill();
    test_decode_memory();
    test_decode_sink_and_pages();
    test_caches();
    test_paged_updates();
    test_paged_fills();
    return 0;
}
