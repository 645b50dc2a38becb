#include <functional>
#include <numeric>

#include "compute_testing.hpp"
#include "ttnn/operations/core/core.hpp"
#include "ttnn/operations/data_movement/chunk/chunk.hpp"
#include "ttnn/operations/data_movement/concat/concat.hpp"
#include "ttnn/operations/data_movement/expand/expand.hpp"
#include "ttnn/operations/data_movement/pad/pad.hpp"
#include "ttnn/operations/data_movement/permute/permute.hpp"
#include "ttnn/operations/data_movement/repeat/repeat.hpp"
#include "ttnn/operations/data_movement/repeat_interleave/repeat_interleave.hpp"
#include "ttnn/operations/data_movement/roll/roll.hpp"
#include "ttnn/operations/data_movement/slice/slice.hpp"
#include "ttnn/operations/data_movement/split/split.hpp"
#include "ttnn/operations/data_movement/squeeze/squeeze.hpp"
#include "ttnn/operations/data_movement/stack/stack.hpp"
#include "ttnn/operations/data_movement/tilize/tilize.hpp"
#include "ttnn/operations/data_movement/tilize_with_val_padding/tilize_with_val_padding.hpp"
#include "ttnn/operations/data_movement/transpose/transpose.hpp"
#include "ttnn/operations/data_movement/unsqueeze/unsqueeze.hpp"
#include "ttnn/operations/data_movement/untilize/untilize.hpp"
#include "ttnn/operations/data_movement/untilize_with_unpadding/untilize_with_unpadding.hpp"
#include "ttnn/operations/data_movement/view/view.hpp"

using namespace compute_testing;
using ttnn::operations::data_movement::PadSpecDim;

namespace {

using Index = std::vector<std::size_t>;
using Dims = ttsl::SmallVector<std::int64_t>;
using Bounds = ttsl::SmallVector<std::int32_t>;

/// A tensor of 0, 1, 2, ...: every element identifies its source.
Tensor numbered(const Shape& shape, DataType dtype = DataType::INT32,
                Layout layout = Layout::TILE) {
    std::vector<float> values(shape.volume());
    std::iota(values.begin(), values.end(), 0.0F);
    return make_tensor(shape, values, dtype, layout);
}

/// Checks every element: `source(index in the result)` is its index in `input`, or empty for
/// `rest`.
void expect_moved(const Tensor& result, const Tensor& input, const Shape& shape,
                  const std::function<Index(const Index&)>& source, float rest = 0.0F,
                  std::source_location where = std::source_location::current()) {
    expect_shape(result, shape, where);
    const std::vector<float> from = values_of(input);
    const auto strides = ttcodegen::cpu::element_strides(input.logical_shape());
    std::vector<float> expected(shape.volume());
    for (std::size_t flat = 0; flat < expected.size(); ++flat) {
        Index index(shape.rank());
        std::size_t remaining = flat;
        for (std::size_t i = shape.rank(); i-- > 0;) {
            index[i] = remaining % shape.view()[i];
            remaining /= shape.view()[i];
        }
        const Index origin = source(index);
        expected[flat] = origin.empty() ? rest
                                        : from[std::inner_product(origin.begin(), origin.end(),
                                                                  strides.begin(), std::size_t{0})];
    }
    expect_close(values_of(result), expected, 0.0, where);
}

bool same_buffer(const Tensor& a, const Tensor& b) {
    return &ttcodegen::cpu::buffer_of(a) == &ttcodegen::cpu::buffer_of(b);
}

void permutations_move_every_element() {
    // 300 x 200: more than one block of a transposition, and no multiple of a block.
    for (const DataType dtype : {DataType::UINT8, DataType::UINT16, DataType::INT32}) {
        const Tensor matrix = numbered(Shape({300, 200}), dtype);
        expect_moved(ttnn::transpose(matrix, 0, 1), matrix, Shape({200, 300}),
                     [](const Index& i) { return Index{i[1], i[0]}; });
    }
    const Tensor tensor = numbered(Shape({2, 3, 4, 5}));
    expect_moved(ttnn::permute(tensor, Dims{0, 2, 3, 1}), tensor, Shape({2, 4, 5, 3}),
                 [](const Index& i) { return Index{i[0], i[3], i[1], i[2]}; });
    expect_moved(ttnn::permute(tensor, Dims{-1, 2, 0, 1}), tensor, Shape({5, 4, 2, 3}),
                 [](const Index& i) { return Index{i[2], i[3], i[1], i[0]}; });
    expect_moved(ttnn::permute(tensor, Dims{1, 0, 2, 3}), tensor, Shape({3, 2, 4, 5}),
                 [](const Index& i) { return Index{i[1], i[0], i[2], i[3]}; });
    expect(same_buffer(ttnn::permute(tensor, Dims{0, 1, 2, 3}), tensor), "identity");
    expect_refused([&] { return ttnn::permute(tensor, Dims{0, 1, 2}); }, "does not match");
    expect_refused([&] { return ttnn::permute(tensor, Dims{0, 0, 2, 3}); }, "twice");
    expect_refused([&] { return ttnn::permute(numbered(Shape({0, 2})), Dims{1, 0}); },
                   "without elements");
}

void reshapes_share_the_buffer_where_they_can() {
    const Tensor tiles = numbered(Shape({64, 64}));
    const Tensor rows = numbered(Shape({64, 64}), DataType::INT32, Layout::ROW_MAJOR);
    expect(same_buffer(ttnn::reshape(tiles, Shape({2, 32, 64})), tiles), "whole tiles");
    expect(!same_buffer(ttnn::reshape(tiles, Shape({32, 2, 64})), tiles), "broken tiles");
    expect(same_buffer(ttnn::reshape(rows, Shape({32, 2, 64})), rows), "whole rows");
    expect(!same_buffer(ttnn::reshape(rows, Shape({32, 128})), rows), "broken rows");
    const Bounds inferred{2, -1, 4};
    expect_shape(ttnn::reshape(tiles, ttsl::Span<const std::int32_t>(inferred)),
                 Shape({2, 512, 4}));
    expect(values_of(ttnn::reshape(tiles, Shape({4096}))) == values_of(tiles), "order stays");
    expect_refused([&] { return ttnn::reshape(tiles, Shape({5})); }, "Invalid arguments");
    expect_refused(
        [] { return ttnn::reshape(numbered(Shape({32, 64}), DataType::UINT8), Shape({2048})); },
        "Can only work with");
    expect_shape(ttnn::squeeze(numbered(Shape({1, 2, 1})), 0), Shape({2, 1}));
    expect_shape(ttnn::squeeze(numbered(Shape({1, 2, 1}))), Shape({2}));
    expect_shape(ttnn::unsqueeze(tiles, -1), Shape({64, 64, 1}));
    expect_shape(ttnn::unsqueeze_to_4D(tiles), Shape({1, 1, 64, 64}));
    expect_refused([&] { return ttnn::view(tiles, Shape({32, 128})); }, "last dimension");
}

void slices_take_bounds_and_steps() {
    const Tensor tensor = numbered(Shape({3, 40, 50}));
    const auto sliced = [&](const Bounds& begins, const Bounds& ends, const Bounds& steps) {
        return ttnn::slice(tensor, begins, ends, steps);
    };
    expect_moved(sliced({1, 3, 0}, {3, 40, 50}, {1, 1, 1}), tensor, Shape({2, 37, 50}),
                 [](const Index& i) { return Index{i[0] + 1, i[1] + 3, i[2]}; });
    expect_moved(sliced({0, 0, 1}, {3, -1, 50}, {2, 3, 7}), tensor, Shape({2, 13, 7}),
                 [](const Index& i) { return Index{2 * i[0], 3 * i[1], 7 * i[2] + 1}; });
    expect(same_buffer(sliced({0, 0, 0}, {3, 40, 50}, {1, 1, 1}), tensor), "all of it");
    expect_shape(sliced({1, 0, 0}, {1, 40, 50}, {1, 1, 1}), Shape({0, 40, 50}));
    expect_refused([&] { return sliced({0, 0, 0}, {3, 41, 50}, {1, 1, 1}); }, "less than or equal");
    expect_refused([&] { return sliced({2, 0, 0}, {1, 40, 50}, {1, 1, 1}); }, "less than or equal");
    expect_refused([&] { return sliced({0, 0, 0}, {3, 40, 50}, {1, 1, 0}); }, "positive");
    expect_refused([&] { return sliced({0, 0}, {3, 40}, {1, 1}); }, "same size");
    const Tensor block = numbered(Shape({64, 64}), DataType::BFLOAT8_B);
    expect(ttnn::slice(block, Bounds{0, 1}, Bounds{64, 33}, Bounds{1, 1}).dtype() ==
                   DataType::BFLOAT16 &&
               ttnn::slice(block, Bounds{32, 0}, Bounds{64, 33}, Bounds{1, 1}).dtype() ==
                   DataType::BFLOAT8_B,
           "block floats between tiles only");
    expect_refused([&] { return ttnn::slice(block, Bounds{0, 0}, Bounds{64, 64}, Bounds{1, 2}); },
                   "Strided slice");
}

void parts_and_wholes_fit_together() {
    const Tensor tensor = numbered(Shape({4, 7, 3}));
    const auto parts = ttnn::split(tensor, 3, 1);
    expect(parts.size() == 3, "three parts");
    expect_shape(parts[2], Shape({4, 1, 3}));
    expect(values_of(ttnn::concat(parts, 1)) == values_of(tensor), "concat undoes split");
    expect(ttnn::split(tensor, Dims{3, 4}, 1).size() == 2 && ttnn::chunk(tensor, 3, 1).size() == 3,
           "by sizes and by number");
    expect_refused([&] { return ttnn::split(tensor, Dims{3, 3}, 1); }, "sum to");
    expect_refused([&] { return ttnn::concat({}, 0); }, "non-empty");
    expect_refused(
        [&] { return ttnn::concat({tensor, numbered(Shape({4, 7, 3}), DataType::UINT16)}, 0); },
        "same dtypes");
    expect_refused([&] { return ttnn::concat({tensor, numbered(Shape({4, 6, 3}))}, 0); },
                   "All dimensions must be the same size");
    const Tensor block = numbered(Shape({30, 32}), DataType::BFLOAT8_B);
    expect(ttnn::concat({block, block}, 0).dtype() == DataType::BFLOAT16, "by way of bf16");
    expect(ttnn::concat({block, block}, 1).dtype() == DataType::BFLOAT8_B, "tile by tile");
    const Tensor stacked = ttnn::stack({tensor, tensor}, 1);
    expect_moved(stacked, tensor, Shape({4, 2, 7, 3}),
                 [](const Index& i) { return Index{i[0], i[2], i[3]}; });
}

void padding_surrounds() {
    const Tensor rows = numbered(Shape({3, 5}), DataType::FLOAT32, Layout::ROW_MAJOR);
    const ttsl::SmallVector<PadSpecDim> widths{{1, 2}, {3, 0}};
    expect_moved(
        ttnn::pad(rows, widths, -1.0F, true), rows, Shape({6, 8}),
        [](const Index& i) {
            return i[0] < 1 || i[0] > 3 || i[1] < 3 ? Index{} : Index{i[0] - 1, i[1] - 3};
        },
        -1.0F);
    const Tensor tiles = numbered(Shape({3, 5}));
    expect_refused([&] { return ttnn::pad(tiles, widths, 0.0F, true); }, "front padding");
    const ttsl::SmallVector<std::array<std::uint32_t, 2>> last{{0, 3}};
    expect_shape(ttnn::pad(tiles, last, 0.0F), Shape({3, 8}));
    const ttsl::SmallVector<std::array<std::uint32_t, 2>> many(3, {0, 1});
    expect_refused([&] { return ttnn::pad(tiles, many, 0.0F); }, "padding widths");
    const Tensor deep = numbered(Shape({2, 2, 2, 2, 2}));
    const ttsl::SmallVector<std::array<std::uint32_t, 2>> high{
        {0, 1}, {0, 0}, {0, 0}, {0, 0}, {0, 0}};
    expect_refused([&] { return ttnn::pad(deep, high, 0.0F); }, "lowest 3 dimensions");
    expect(same_buffer(ttnn::pad(tiles, ttsl::SmallVector<PadSpecDim>{{0, 0}}, 0.0F, true), tiles),
           "no padding");
}

void repetitions_repeat() {
    const Tensor tensor = numbered(Shape({2, 3}));
    expect_moved(ttnn::repeat(tensor, ttsl::SmallVector<std::uint32_t>{2, 1, 4}), tensor,
                 Shape({2, 2, 12}), [](const Index& i) { return Index{i[1], i[2] % 3}; });
    expect_moved(ttnn::repeat_interleave(tensor, 3, 0), tensor, Shape({6, 3}),
                 [](const Index& i) { return Index{i[0] / 3, i[1]}; });
    const Tensor column = numbered(Shape({2, 1}));
    expect_moved(ttnn::expand(column, Bounds{4, -1, 3}), column, Shape({4, 2, 3}),
                 [](const Index& i) { return Index{i[1], 0}; });
    expect_moved(ttnn::roll(tensor, -1, 1), tensor, Shape({2, 3}),
                 [](const Index& i) { return Index{i[0], (i[1] + 1) % 3}; });
    expect(same_buffer(ttnn::repeat(tensor, Shape({1, 1})), tensor), "once");
    expect_refused([&] { return ttnn::repeat(tensor, Shape({0, 1})); }, "volume is 0");
    expect_refused([&] { return ttnn::expand(tensor, Bounds{4, 3}); }, "size 1 dimensions");
    expect_refused([&] { return ttnn::repeat_interleave(numbered(Shape({4})), 2, 0); }, "rank 1");
}

void tiles_and_rows_by_name() {
    const Tensor rows = numbered(Shape({30, 50}), DataType::FLOAT32, Layout::ROW_MAJOR);
    expect_refused([&] { return ttnn::tilize(rows); }, "TILE_WIDTH");
    const Tensor tiles = ttnn::tilize_with_zero_padding(rows);
    expect(tiles.layout() == Layout::TILE && values_of(tiles) == values_of(rows), "tiles");
    expect_shape(ttnn::tilize_with_val_padding(rows, Shape({32, 64}), 0.0F), Shape({30, 50}));
    expect_refused([&] { return ttnn::tilize_with_val_padding(rows, Shape({32, 60}), 0.0F); },
                   "divisible by tile size");
    expect(values_of(ttnn::untilize(tiles)) == values_of(rows), "rows");
    expect_moved(ttnn::untilize_with_unpadding(tiles, Shape({15, 20})), rows, Shape({16, 21}),
                 [](const Index& i) { return i; });
    expect_refused([&] { return ttnn::untilize(rows); }, "tile major");
}

}  // namespace

int main() {
    permutations_move_every_element();
    reshapes_share_the_buffer_where_they_can();
    slices_take_bounds_and_steps();
    parts_and_wholes_fit_together();
    padding_surrounds();
    repetitions_repeat();
    tiles_and_rows_by_name();
}
