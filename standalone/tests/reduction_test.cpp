#include "compute_testing.hpp"
#include "ttnn/operations/reduction/generic/generic_reductions.hpp"
#include "ttnn/operations/reduction/prod/prod.hpp"

using namespace compute_testing;

namespace {

using Dims = ttnn::SmallVector<int>;

/// Values reduced to one, for each output in row-major order.
std::vector<std::vector<float>> groups_of(const Shape& shape, const std::vector<float>& values,
                                          const std::vector<bool>& is_reduced) {
    std::size_t outputs = 1;
    for (std::size_t dim = 0; dim < shape.rank(); ++dim) {
        outputs *= is_reduced[dim] ? 1 : shape[static_cast<int>(dim)];
    }
    std::vector<std::vector<float>> groups(outputs);
    for (std::size_t i = 0; i < values.size(); ++i) {
        std::size_t rest = i;
        std::size_t output = 0;
        std::size_t stride = 1;
        for (std::size_t dim = shape.rank(); dim-- > 0;) {
            const std::size_t size = shape[static_cast<int>(dim)];
            if (!is_reduced[dim]) {
                output += rest % size * stride;
                stride *= size;
            }
            rest /= size;
        }
        groups[output].push_back(values[i]);
    }
    return groups;
}

template <typename Function>
std::vector<float> reference(const Tensor& input, const Dims& dims, const Function& function) {
    std::vector<bool> is_reduced(input.logical_shape().rank(), dims.empty());
    for (const int dim : dims) {
        is_reduced[static_cast<std::size_t>(dim)] = true;
    }
    std::vector<float> result;
    for (const auto& group : groups_of(input.logical_shape(), values_of(input), is_reduced)) {
        result.push_back(static_cast<float>(function(group)));
    }
    return result;
}

double sum_of(const std::vector<float>& values) {
    double sum = 0;
    for (const float value : values) {
        sum += value;
    }
    return sum;
}

double variance_of(const std::vector<float>& values) {
    const double mean = sum_of(values) / static_cast<double>(values.size());
    double sum = 0;
    for (const float value : values) {
        sum += (value - mean) * (value - mean);
    }
    return sum / static_cast<double>(values.size() - 1);
}

void test_values() {
    for (const DataType dtype : {DataType::FLOAT32, DataType::BFLOAT16}) {
        for (const Dims& dims : {Dims{3}, Dims{2}, Dims{0}, Dims{1, 3}, Dims{0, 2}, Dims{1, 2},
                                 Dims{0, 1, 2, 3}, Dims{}}) {
            const Tensor input = draw_tensor(Shape({3, 4, 37, 290}), dtype);
            const auto check = [&](const Tensor& result, auto function) {
                expect(result.dtype() == dtype && result.layout() == Layout::TILE, "type");
                expect_close(values_of(result), reference(input, dims, function),
                             dtype == DataType::FLOAT32 ? engine_tolerance_of(DataType::FLOAT32)
                                                        : engine_tolerance_of(DataType::BFLOAT16));
            };
            check(ttnn::sum(input, dims), sum_of);
            check(ttnn::mean(input, dims), [](const auto& values) {
                return sum_of(values) / static_cast<double>(values.size());
            });
            check(ttnn::max(input, dims), [](const auto& values) {
                return *std::max_element(values.begin(), values.end());
            });
            check(ttnn::min(input, dims), [](const auto& values) {
                return *std::min_element(values.begin(), values.end());
            });
            check(ttnn::var(input, dims), variance_of);
            check(ttnn::std(input, dims),
                  [](const auto& values) { return std::sqrt(variance_of(values)); });
        }
    }
}

void test_shapes_and_types() {
    const Tensor input = draw_tensor(Shape({2, 3, 30, 50}), DataType::BFLOAT16, Layout::ROW_MAJOR);
    expect_shape(ttnn::sum(input, -1, true), Shape({2, 3, 30, 1}));
    expect_shape(ttnn::sum(input, Dims{-1, -2}), Shape({2, 3}));
    expect_shape(ttnn::sum(input), Shape(ttsl::SmallVector<std::uint32_t>{}));
    expect(ttnn::sum(input, -1).layout() == Layout::TILE, "tiles from rows");
    expect(ttnn::sum(draw_tensor(Shape({30, 50}), DataType::BFLOAT8_B), 1).dtype() ==
               DataType::BFLOAT16,
           "unaligned bfp8 comes back as bf16");
    expect(ttnn::sum(draw_tensor(Shape({32, 64}), DataType::BFLOAT8_B), 1).dtype() ==
               DataType::BFLOAT8_B,
           "aligned bfp8 stays");
    const Tensor integers = make_tensor(Shape({2, 2}), {1, 2, 3, 4}, DataType::UINT32);
    expect_close(values_of(ttnn::sum(integers, 0)), {4, 6}, 0);
    expect_close(values_of(ttnn::max(integers, 1)), {2, 4}, 0);
    // Columns of no width: nothing is summed, and nothing divided by it.
    expect_shape(ttnn::mean(draw_tensor(Shape({3, 4, 0})), 1), Shape({3, 0}));
    expect_close(values_of(ttnn::sum(draw_tensor(Shape({2, 0})), 1)), {0, 0}, 0);
    const Tensor with_nan = make_tensor(Shape({1, 3}), {1, std::nanf(""), 2});
    expect(std::isnan(values_of(ttnn::max(with_nan, 1))[0]), "NaN wins");
    expect_close(values_of(ttnn::sum(make_tensor(Shape({3}), {1, 2, 3}), 0, false, std::nullopt,
                                     std::nullopt, 0.5F)),
                 {3}, 0);
    expect_close(values_of(ttnn::var(make_tensor(Shape({4}), {1, 2, 3, 4}), 0, false, std::nullopt,
                                     std::nullopt, 1.0F, false)),
                 {1.25F}, engine_tolerance_of(DataType::FLOAT32));
}

void test_product() {
    const Tensor input = make_tensor(Shape({2, 3}), {1, 2, 3, 4, 5, 6}, DataType::BFLOAT16);
    expect_close(values_of(ttnn::prod(input, 1)), {6, 120}, 0);
    expect_close(values_of(ttnn::prod(input, 0, true)), {4, 10, 18}, 0);
    expect_close(values_of(ttnn::prod(input)), {720}, 0);
}

void test_refusals() {
    const Tensor input = draw_tensor(Shape({2, 3}));
    expect_refused([&] { ttnn::sum(input, 2); }, "Unsupported dim 2 at index 0");
    expect_refused([&] { ttnn::sum(input, Dims{0, -3}); }, "Unsupported dim -1 at index 1");
    expect_refused([&] { ttnn::sum(draw_tensor(Shape({2}), DataType::INT32), 0); }, "INT32");
    expect_refused([&] { ttnn::var(draw_tensor(Shape({2}), DataType::UINT32), 0); }, "UINT32");
    expect_refused([&] { ttnn::prod(input, 0); }, "expected BFLOAT16");
    expect_refused([&] { ttnn::prod(draw_tensor(Shape({2}), DataType::BFLOAT16), 1); },
                   "out of range");
    expect_refused([&] { ttnn::max(draw_tensor(Shape({2, 0})), 1); }, "non-zero size");
    expect_refused(
        [&] { ttnn::sum(draw_tensor(Shape({2}), DataType::FLOAT32, Layout::TILE, 1, true), 0); },
        "on device");
}

}  // namespace

int main() {
    test_values();
    test_shapes_and_types();
    test_product();
    test_refusals();
}
