#include <cstring>

#include "compute/sharding.hpp"
#include "compute_testing.hpp"
#include "conditions_testing.hpp"
#include "ttnn/operations/core/core.hpp"
#include "ttnn/operations/experimental/transformer/nlp_concat_heads/nlp_concat_heads.hpp"
#include "ttnn/operations/experimental/transformer/nlp_concat_heads_decode/nlp_concat_heads_decode.hpp"
#include "ttnn/operations/experimental/transformer/nlp_create_qkv_heads/nlp_create_qkv_heads.hpp"
#include "ttnn/operations/experimental/transformer/nlp_create_qkv_heads_decode/nlp_create_qkv_heads_decode.hpp"
#include "ttnn/operations/experimental/transformer/rotary_embedding/rotary_embedding.hpp"
#include "ttnn/operations/experimental/transformer/rotary_embedding_llama/rotary_embedding_llama.hpp"
#include "ttnn/operations/transformer/concatenate_heads/concatenate_heads.hpp"
#include "ttnn/operations/transformer/split_query_key_value_and_split_heads/split_query_key_value_and_split_heads.hpp"

using namespace compute_testing;

namespace {

/// Heads that begin at column `first` of rows (users, positions, hidden).
std::vector<float> heads_of(const std::vector<float>& rows, std::size_t users,
                            std::size_t positions, std::size_t hidden, std::size_t first,
                            std::size_t heads, std::size_t width, bool transpose) {
    std::vector<float> result(users * heads * positions * width);
    for (std::size_t i = 0; i < result.size(); ++i) {
        const std::size_t position = transpose ? i % positions : i / width % positions;
        const std::size_t element = transpose ? i / positions % width : i % width;
        const std::size_t head = i / (positions * width) % heads;
        const std::size_t user = i / (positions * width * heads);
        result[i] = rows[(user * positions + position) * hidden + first + head * width + element];
    }
    return result;
}

void test_split() {
    for (const DataType dtype : {DataType::FLOAT32, DataType::BFLOAT16}) {
        for (const bool transpose : {false, true}) {
            const Tensor input = draw_tensor(Shape({2, 30, 512}), dtype);
            const auto rows = values_of(input);
            const auto [q, k, v] = ttnn::transformer::split_query_key_value_and_split_heads(
                input, std::nullopt, 4, 2, transpose, std::nullopt);
            expect_shape(q, Shape({2, 4, 30, 64}));
            expect_shape(k, transpose ? Shape({2, 2, 64, 30}) : Shape({2, 2, 30, 64}));
            expect_close(values_of(q), heads_of(rows, 2, 30, 512, 0, 4, 64, false), 0);
            expect_close(values_of(k), heads_of(rows, 2, 30, 512, 256, 2, 64, transpose), 0);
            expect_close(values_of(v), heads_of(rows, 2, 30, 512, 384, 2, 64, false), 0);
        }
    }
}

void test_split_of_block_shards() {
    using conditions_testing::kBlock;
    using conditions_testing::kHeight;
    for (const bool transpose : {false, true}) {
        const Tensor input = draw_tensor(Shape({2, 32, 512}), DataType::BFLOAT16);
        const auto rows = values_of(input);
        // Two groups, each of two query heads, a key head and a value head.
        const auto group = [&](std::size_t first, std::size_t heads, bool transposed) {
            const auto left = heads_of(rows, 2, 32, 512, first, heads, 64, transposed);
            const auto right = heads_of(rows, 2, 32, 512, 256 + first, heads, 64, transposed);
            std::vector<float> both;
            const std::size_t user = left.size() / 2;
            for (std::size_t at = 0; at < left.size(); at += user) {
                for (const auto* part : {&left, &right}) {
                    both.insert(both.end(), part->begin() + static_cast<std::ptrdiff_t>(at),
                                part->begin() + static_cast<std::ptrdiff_t>(at + user));
                }
            }
            return both;
        };
        const Tensor blocks =
            ttnn::to_memory_config(input, conditions_testing::sharded(kBlock, 32, 256, 2, 2));
        const auto [q, k, v] = ttnn::transformer::split_query_key_value_and_split_heads(
            blocks, std::nullopt, 4, 2, transpose,
            MemoryConfig(kHeight, tt::tt_metal::BufferType::L1, std::nullopt));
        expect_close(values_of(q), group(0, 2, false), 0);
        expect_close(values_of(k), group(128, 1, transpose), 0);
        expect_close(values_of(v), group(192, 1, false), 0);
    }
}

void test_split_of_two_tensors() {
    const Tensor queries = draw_tensor(Shape({2, 1, 32, 256}));
    const Tensor others = draw_tensor(Shape({2, 1, 32, 256}), DataType::FLOAT32, Layout::TILE, 2);
    const auto [q, k, v] =
        ttnn::experimental::nlp_create_qkv_heads(queries, others, 4, 2, false, std::nullopt);
    expect_close(values_of(q), heads_of(values_of(queries), 2, 32, 256, 0, 4, 64, false), 0);
    expect_close(values_of(k), heads_of(values_of(others), 2, 32, 256, 0, 2, 64, false), 0);
    expect_close(values_of(v), heads_of(values_of(others), 2, 32, 256, 128, 2, 64, false), 0);
    expect_refused(
        [&] {
            ttnn::experimental::nlp_create_qkv_heads(draw_tensor(Shape({2, 1, 30, 512})),
                                                     std::nullopt, 4, 2, false, std::nullopt);
        },
        "Unsupported input shape");
}

void test_join() {
    const Tensor input = draw_tensor(Shape({2, 4, 30, 64}));
    const Tensor joined = ttnn::transformer::concatenate_heads(input);
    expect_shape(joined, Shape({2, 30, 256}));
    expect_close(heads_of(values_of(joined), 2, 30, 256, 0, 4, 64, false), values_of(input), 0);
    const Tensor four = ttnn::experimental::nlp_concat_heads(input);
    expect_shape(four, Shape({2, 1, 30, 256}));
    expect_close(values_of(four), values_of(joined), 0);
    expect_refused(
        [&] { ttnn::transformer::concatenate_heads(draw_tensor(Shape({2, 4, 30, 50}))); },
        "multiple of 32");
}

void test_decode() {
    const Tensor input = draw_tensor(Shape({1, 1, 3, 256}), DataType::BFLOAT16);
    const auto rows = values_of(input);
    std::optional<std::array<Tensor, 3>> no_outputs;
    const auto [q, k, v] = ttnn::experimental::nlp_create_qkv_heads_decode(input, 4, 2, no_outputs);
    expect_shape(q, Shape({1, 3, 4, 32}));
    expect_shape(k, Shape({1, 3, 2, 32}));
    expect(q.memory_config().memory_layout() == ttnn::TensorMemoryLayout::HEIGHT_SHARDED,
           "height-sharded");
    expect_close(values_of(q), heads_of(rows, 3, 1, 256, 0, 4, 32, false), 0);
    expect_close(values_of(v), heads_of(rows, 3, 1, 256, 192, 2, 32, false), 0);
    const Tensor joined = ttnn::experimental::nlp_concat_heads_decode(q, 4);
    expect_shape(joined, Shape({1, 1, 32, 128}));
    auto expected = values_of(q);
    expected.resize(32 * 128, 0.0F);
    expect_close(values_of(joined), expected, 0);
}

void test_rotary() {
    const Tensor input = draw_tensor(Shape({1, 3, 30, 64}));
    const Tensor cosines = draw_tensor(Shape({1, 1, 40, 64}), DataType::FLOAT32, Layout::TILE, 2);
    const Tensor sines = draw_tensor(Shape({1, 1, 40, 64}), DataType::FLOAT32, Layout::TILE, 3);
    const auto values = values_of(input);
    for (const std::optional<std::uint32_t> token : {std::optional<std::uint32_t>{}, {7U}}) {
        std::vector<float> expected(3 * 32 * 64);
        for (std::size_t i = 0; i < values.size(); ++i) {
            const std::size_t position = i / 64 % 30;
            const std::size_t angle =
                token.value_or(static_cast<std::uint32_t>(position)) * 64 + i % 64;
            const float rotated = i % 64 < 32 ? -values[i + 32] : values[i - 32];
            expected[(i / 64 / 30 * 32 + position) * 64 + i % 64] =
                values[i] * values_of(cosines)[angle] + rotated * values_of(sines)[angle];
        }
        const Tensor result = ttnn::experimental::rotary_embedding(input, cosines, sines, token);
        expect_shape(result, Shape({1, 3, 32, 64}));
        // Sums have 16 bits by default, whatever the operands have.
        expect_close(values_of(result), expected, 0.01);
    }
    expect_refused([&] { ttnn::experimental::rotary_embedding(input, cosines, sines, 40); },
                   "40 positions");
}

void test_rotary_llama() {
    // Swaps neighbours: (x0, x1) becomes (-x1, x0).
    std::vector<float> matrix(32 * 32);
    for (std::size_t i = 0; i < 32; i += 2) {
        matrix[i * 32 + i + 1] = 1;
        matrix[(i + 1) * 32 + i] = -1;
    }
    const Tensor swap = make_tensor(Shape({1, 1, 32, 32}), matrix, DataType::BFLOAT16);
    const Tensor cosines = draw_tensor(Shape({1, 1, 50, 64}), DataType::BFLOAT16, Layout::TILE, 2);
    const Tensor sines = draw_tensor(Shape({1, 1, 50, 64}), DataType::BFLOAT16, Layout::TILE, 3);
    const Tensor input = draw_tensor(Shape({1, 3, 40, 64}), DataType::BFLOAT16);
    const auto values = values_of(input);
    std::vector<float> expected(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t angle = i / 64 % 40 * 64 + i % 64;
        const float rotated = i % 2 == 0 ? -values[i + 1] : values[i - 1];
        expected[i] = values[i] * values_of(cosines)[angle] + rotated * values_of(sines)[angle];
    }
    expect_close(values_of(ttnn::experimental::rotary_embedding_llama(input, cosines, sines, swap)),
                 expected, 0.005);
    expect_refused(
        [&] { ttnn::experimental::rotary_embedding_llama(input, cosines, sines, swap, true); },
        "HEIGHT_SHARDED");
}

}  // namespace

int main() {
    test_split();
    test_split_of_block_shards();
    test_split_of_two_tensors();
    test_join();
    test_decode();
    test_rotary();
    test_rotary_llama();
}
