#include "ttnn/operations/embedding/embedding.hpp"

#include "compute_testing.hpp"
#include "ttnn/operations/embedding_backward/embedding_backward.hpp"

using namespace compute_testing;

namespace {

const std::vector<float> kIndices{3, 0, 2, 1, 3, 3};

Tensor indices_tensor() {
    return make_tensor(Shape({2, 3}), kIndices, DataType::UINT32, Layout::ROW_MAJOR);
}

void test_values() {
    const Tensor table = draw_tensor(Shape({4, 50}), DataType::BFLOAT16, Layout::ROW_MAJOR);
    const auto rows = values_of(table);
    std::vector<float> expected;
    for (const float index : kIndices) {
        const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(index) * 50;
        expected.insert(expected.end(), begin, begin + 50);
    }
    const Tensor result = ttnn::embedding(indices_tensor(), table);
    expect_shape(result, Shape({2, 3, 50}));
    expect(result.layout() == Layout::ROW_MAJOR, "the weight's layout");
    expect_close(values_of(result), expected, 0);
    const Tensor tiles = ttnn::embedding(indices_tensor(), table, std::nullopt, Layout::TILE,
                                         ttnn::prim::EmbeddingsType::GENERIC, DataType::FLOAT32);
    expect(tiles.layout() == Layout::TILE && tiles.dtype() == DataType::FLOAT32, "tiles");
    expect_close(values_of(tiles), expected, 0);
    const Tensor rows_only =
        ttnn::embedding(indices_tensor(), table, std::nullopt, std::nullopt,
                        ttnn::prim::EmbeddingsType::GENERIC, DataType::FLOAT32);
    expect(rows_only.dtype() == DataType::BFLOAT16, "no other type without tiles");
}

void test_refusals() {
    const Tensor table = draw_tensor(Shape({3, 32}), DataType::BFLOAT16, Layout::ROW_MAJOR);
    expect_refused([&] { ttnn::embedding(indices_tensor(), table); },
                   "Index 3 at position 0 is outside of the table of 3 rows");
    expect_refused(
        [&] {
            ttnn::embedding(indices_tensor(),
                            draw_tensor(Shape({4, 32}), DataType::FLOAT32, Layout::ROW_MAJOR));
        },
        "must have BFLOAT16 dtype");
    expect_refused([&] { ttnn::embedding(make_tensor(Shape({1}), {0}, DataType::INT32), table); },
                   "UINT32 or BFLOAT16");
    expect_refused(
        [&] {
            ttnn::embedding(indices_tensor(),
                            draw_tensor(Shape({2, 1, 4, 32}), DataType::BFLOAT16));
        },
        "must be 1");
}

void test_backward() {
    std::vector<float> indices(32);
    for (std::size_t i = 0; i < indices.size(); ++i) {
        indices[i] = static_cast<float>(i * i % 5);
    }
    const Tensor positions =
        make_tensor(Shape({1, 32}), indices, DataType::UINT32, Layout::ROW_MAJOR);
    const Tensor gradient = draw_tensor(Shape({1, 1, 32, 64}), DataType::BFLOAT16);
    const Tensor table = draw_tensor(Shape({5, 64}), DataType::BFLOAT16);
    std::vector<float> expected(5 * 64);
    const auto values = values_of(gradient);
    for (std::size_t i = 0; i < values.size(); ++i) {
        expected[static_cast<std::size_t>(indices[i / 64]) * 64 + i % 64] += values[i];
    }
    const Tensor result = ttnn::embedding_bw(positions, table, gradient);
    expect_shape(result, Shape({1, 1, 5, 64}));
    expect_close(values_of(result), expected, 0.005);
}

}  // namespace

int main() {
    test_values();
    test_refusals();
    test_backward();
}
