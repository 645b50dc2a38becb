#include <array>
#include <limits>
#include <optional>

#include "compute_testing.hpp"
#include "ttnn/operations/data_movement/gather/gather.hpp"
#include "ttnn/operations/data_movement/scatter/scatter.hpp"
#include "ttnn/operations/data_movement/sort/sort.hpp"
#include "ttnn/operations/pool/upsample/upsample.hpp"
#include "ttnn/operations/reduction/accumulation/cumprod/cumprod.hpp"
#include "ttnn/operations/reduction/accumulation/cumsum/cumsum.hpp"
#include "ttnn/operations/reduction/argmax/argmax.hpp"
#include "ttnn/operations/reduction/sampling/sampling.hpp"
#include "ttnn/operations/reduction/topk/topk.hpp"

using namespace compute_testing;

namespace {

const float kNan = std::nanf("");

void sorting_keeps_equal_values_in_order() {
    const Tensor tensor = make_tensor(Shape({2, 4}), {3, 1, 3, 2, kNan, 0, -1, 0});
    const auto ascending = ttnn::sort(tensor);
    expect_close(values_of(ascending[0]), {1, 2, 3, 3, -1, 0, 0, kNan}, 0.0);
    expect(values_of(ascending[1]) == std::vector<float>{1, 3, 0, 2, 2, 1, 3, 0}, "indices");
    expect(ascending[1].dtype() == DataType::UINT16, "u16 indices");
    const auto down = ttnn::sort(make_tensor(Shape({3, 2}), {1, 5, 3, 4, 2, 6}), 0, true);
    expect(values_of(down[0]) == std::vector<float>{3, 6, 2, 5, 1, 4}, "descending columns");
    const auto wide = ttnn::sort(draw_tensor(Shape({1, 70000}), DataType::BFLOAT16));
    expect(wide[1].dtype() == DataType::UINT32, "u32 indices from 65536 up");
    expect_refused([] { return ttnn::sort(draw_tensor(Shape({4}), DataType::INT32)); }, "must be");
    expect_refused(
        [] { return ttnn::sort(draw_tensor(Shape({4}), DataType::FLOAT32, Layout::ROW_MAJOR)); },
        "tiled format");
}

void topk_takes_the_first() {
    const Tensor tensor = make_tensor(Shape({2, 4}), {3, 1, 4, 2, 5, 7, 6, 8}, DataType::BFLOAT16);
    const auto largest = ttnn::topk(tensor, 2, -1, true, true);
    expect(values_of(largest[0]) == std::vector<float>{4, 3, 8, 7}, "values");
    expect(values_of(largest[1]) == std::vector<float>{2, 0, 3, 1}, "indices");
    const auto smallest = ttnn::topk(tensor, 1, 0, false, true);
    expect(values_of(smallest[0]) == std::vector<float>{3, 1, 4, 2}, "smallest of each column");
    expect_refused([&] { return ttnn::topk(tensor, 5, -1, true, true); }, "K cannot be larger");
    expect_refused([] { return ttnn::topk(draw_tensor(Shape({4})), 1, -1, true, true); },
                   "must be BFLOAT16");
}

void argmax_finds_the_first_largest() {
    const Tensor tensor = make_tensor(Shape({2, 3}), {1, 5, 5, 9, 2, 3});
    const Tensor last = ttnn::argmax(tensor, -1);
    expect(last.dtype() == DataType::UINT32 && last.layout() == Layout::ROW_MAJOR, "u32 rows");
    expect(last.to_vector<std::uint32_t>() == std::vector<std::uint32_t>{1, 0}, "positions");
    expect_shape(ttnn::argmax(tensor, 1, true), Shape({2, 1}));
    const Tensor rows =
        make_tensor(Shape({2, 3}), {1, 5, 5, 9, 2, 3}, DataType::INT32, Layout::ROW_MAJOR);
    expect(ttnn::argmax(rows).to_vector<std::uint32_t>()[0] == 3, "of all elements");
    expect_refused([&] { return ttnn::argmax(tensor); }, "dim parameter must be specified");
    expect_refused([&] { return ttnn::argmax(tensor, 0); }, "last dim");
    expect_refused([] { return ttnn::argmax(draw_tensor(Shape({4}), DataType::INT32), 0); },
                   "TILE layout");
}

Tensor of_users(float value, DataType dtype) {
    return make_tensor(Shape({32}), std::vector<float>(32, value), dtype, Layout::ROW_MAJOR);
}

/// Samples of 32 users from 64 candidates: number 3 * i has the value -|i - 40| / 8.
std::vector<std::uint32_t> drawn(float k, float p, float temp, std::optional<std::uint32_t> seed) {
    std::vector<float> values;
    std::vector<float> tokens;
    for (int i = 0; i < 32 * 64; ++i) {
        values.push_back(-std::abs(static_cast<float>(i % 64 - 40)) / 8);
        tokens.push_back(static_cast<float>(3 * (i % 64)));
    }
    const Shape shape({1, 1, 32, 64});
    const Tensor result =
        ttnn::sampling(make_tensor(shape, values, DataType::BFLOAT16),
                       make_tensor(shape, tokens, DataType::INT32, Layout::ROW_MAJOR),
                       of_users(k, DataType::UINT32), of_users(p, DataType::BFLOAT16),
                       of_users(temp, DataType::BFLOAT16), seed);
    expect_shape(result, Shape({1, 1, 1, 32}));
    expect(result.dtype() == DataType::UINT32 && result.layout() == Layout::ROW_MAJOR, "u32 rows");
    return result.to_vector<std::uint32_t>();
}

void sampling_draws_from_the_most_likely() {
    const std::vector<std::uint32_t> likeliest(32, 120);
    expect(drawn(1, 1.0F, 1.0F, 7) == likeliest, "k = 1 takes the maximum");
    expect(drawn(32, 0.0F, 1.0F, 7) == likeliest, "p = 0 leaves the maximum");
    expect(drawn(32, 1.0F, 512.0F, 7) == likeliest, "a great factor leaves the maximum");
    expect(drawn(5, 1.0F, 1.0F, 7) == drawn(5, 1.0F, 1.0F, 7), "the same seed draws the same");
    expect(drawn(5, 1.0F, 1.0F, 7) != drawn(5, 1.0F, 1.0F, 8), "another seed draws others");
    expect(drawn(5, 1.0F, 1.0F, {}) != drawn(5, 1.0F, 1.0F, {}), "no seed draws anew");
    // The shares of the three likeliest are 1 : exp(-1) : exp(-1), in the order of their places;
    // the first two together have 0.79.
    std::array<int, 64> counts{};
    for (std::uint32_t seed = 1; seed <= 100; ++seed) {
        for (const std::uint32_t token : drawn(3, 1.0F, 8.0F, seed)) {
            ++counts[token / 3];
        }
        for (const std::uint32_t token : drawn(3, 0.75F, 8.0F, seed)) {
            expect(token == 120 || token == 117, "p leaves out the third");
        }
    }
    expect(counts[39] + counts[40] + counts[41] == 3200, "draws stay within the k likeliest");
    expect(std::abs(counts[40] / 3200.0 - 0.576) < 0.04, "share of the likeliest");
    expect(std::abs(counts[39] / 3200.0 - 0.212) < 0.04, "share of the second");
}

void sampling_refuses_what_the_card_refuses() {
    const Tensor k = of_users(1, DataType::UINT32);
    const Tensor one = of_users(1, DataType::BFLOAT16);
    const auto sample = [&](const Shape& shape, const Tensor& count, Layout layout,
                            const std::optional<Tensor>& output = std::nullopt) {
        return ttnn::sampling(draw_tensor(shape, DataType::BFLOAT16, layout),
                              draw_tensor(shape, DataType::UINT32, Layout::ROW_MAJOR), count, one,
                              one, 1, std::nullopt, output);
    };
    const Shape shape({1, 1, 32, 32});
    expect_refused([&] { return sample(shape, k, Layout::ROW_MAJOR); }, "TILE_LAYOUT");
    expect_refused([&] { return sample(shape, one, Layout::TILE); }, "supported for k");
    expect_refused([&] { return sample(Shape({1, 1, 16, 32}), k, Layout::TILE); }, "32 users");
    expect_refused([&] { return sample(Shape({1, 1, 32, 40}), k, Layout::TILE); }, "by 32");
    expect_refused([&] { return sample(Shape({1, 2, 16, 32}), k, Layout::TILE); },
                   "one element for each");
    expect_refused([&] { return sample(shape, k, Layout::TILE, one); }, "for outputs");
}

void gathers_and_scatters_along_a_dimension() {
    const Tensor tensor = make_tensor(Shape({2, 3}), {0, 1, 2, 10, 11, 12}, DataType::BFLOAT16);
    const Tensor index = make_tensor(Shape({2, 2}), {2, 0, 1, 1}, DataType::UINT32);
    expect(values_of(ttnn::gather(tensor, 1, index, false, std::nullopt)) ==
               std::vector<float>{2, 0, 11, 11},
           "gather along rows");
    const Tensor down = make_tensor(Shape({1, 3}), {1, 0, 1}, DataType::UINT16);
    expect(values_of(ttnn::gather(tensor, 0, down, false, std::nullopt)) ==
               std::vector<float>{10, 1, 12},
           "gather along columns");
    const Tensor wrong = make_tensor(Shape({1, 1}), {3}, DataType::UINT32);
    expect_refused([&] { return ttnn::gather(tensor, 1, wrong, false, std::nullopt); },
                   "out of range");
    expect_refused([&] { return ttnn::gather(tensor, 1, tensor, false, std::nullopt); },
                   "UINT32 or UINT16");
    const Tensor source = make_tensor(Shape({2, 2}), {7, 8, 9, 9}, DataType::BFLOAT16);
    expect(values_of(ttnn::scatter(tensor, 1, index, source)) ==
               std::vector<float>{8, 1, 7, 10, 9, 12},
           "scatter");
    expect(values_of(ttnn::scatter_add(tensor, 1, index, source)) ==
               std::vector<float>{8, 1, 9, 10, 29, 12},
           "scatter_add");
    expect_refused([&] { return ttnn::scatter(tensor, 1, index, source, std::nullopt, "amax"); },
                   "reduce must be either");
    expect_refused([&] { return ttnn::scatter(tensor, 1, source, source); }, "not integer");
}

void accumulations_run_along_a_dimension() {
    const Tensor tensor = make_tensor(Shape({2, 3}), {1, 2, 3, 4, 5, 6});
    expect(values_of(ttnn::cumsum(tensor, 1)) == std::vector<float>{1, 3, 6, 4, 9, 15}, "rows");
    expect(values_of(ttnn::cumsum(tensor, 0)) == std::vector<float>{1, 2, 3, 5, 7, 9}, "columns");
    expect(values_of(ttnn::cumsum(tensor, -1, std::nullopt, true)) ==
               std::vector<float>{6, 5, 3, 15, 11, 6},
           "from the end");
    expect(values_of(ttnn::cumprod(tensor, 1)) == std::vector<float>{1, 2, 6, 4, 20, 120},
           "product");
    expect(ttnn::cumsum(tensor, 0, DataType::INT32).dtype() == DataType::INT32, "data type");
    expect_refused([&] { return ttnn::cumsum(tensor, 2); }, "accumulation axis");
    expect_refused(
        [] {
            return ttnn::cumsum(draw_tensor(Shape({4}), DataType::FLOAT32, Layout::ROW_MAJOR), 0);
        },
        "non-tile layout");
}

void images_are_enlarged() {
    const Tensor image =
        make_tensor(Shape({1, 1, 2, 2}), {1, 2, 3, 4}, DataType::BFLOAT16, Layout::ROW_MAJOR);
    const Tensor nearest = ttnn::upsample(image, std::array<int, 2>{1, 2});
    expect_shape(nearest, Shape({1, 1, 4, 2}));
    expect(values_of(nearest) == std::vector<float>{1, 2, 1, 2, 3, 4, 3, 4}, "nearest");
    expect_shape(ttnn::upsample(image, 1.5F), Shape({1, 1, 3, 2}));
    std::vector<float> ramp(64);
    for (std::size_t i = 0; i < ramp.size(); ++i) {
        ramp[i] = i < 32 ? 0.0F : 4.0F;
    }
    const Tensor edge =
        make_tensor(Shape({1, 1, 2, 32}), ramp, DataType::BFLOAT16, Layout::ROW_MAJOR);
    const Tensor smooth = ttnn::upsample(edge, 2, "bilinear");
    const std::vector<float> values = values_of(smooth);
    expect(values[0] == 0 && values[32] == 1 && values[64] == 3 && values[96] == 4, "bilinear");
    expect(smooth.memory_config().is_sharded(), "bilinear leaves shards in L1");
    expect_refused([&] { return ttnn::upsample(image, 2, "bilinear"); }, "divisible by 32");
    expect_refused([&] { return ttnn::upsample(image, 2, "cubic"); }, "nearest or bilinear");
    expect_refused([&] { return ttnn::upsample(edge, 1.5F, "bilinear"); }, "integer scale");
}

}  // namespace

int main() {
    sorting_keeps_equal_values_in_order();
    topk_takes_the_first();
    argmax_finds_the_first_largest();
    sampling_draws_from_the_most_likely();
    sampling_refuses_what_the_card_refuses();
    gathers_and_scatters_along_a_dimension();
    accumulations_run_along_a_dimension();
    images_are_enlarged();
}
