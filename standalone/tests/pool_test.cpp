#include "compute_testing.hpp"
#include "ttnn/operations/experimental/adaptive_pool/adaptive_pools.hpp"
#include "ttnn/operations/pool/generic/generic_pools.hpp"
#include "ttnn/operations/pool/global_avg_pool/global_avg_pool.hpp"

using namespace compute_testing;

namespace {

using Pair = std::array<std::uint32_t, 2>;

struct Case {
    std::uint32_t height, width;
    Pair kernel, stride;
    std::uint32_t padding;
    bool ceil_mode;
    std::uint32_t output_height, output_width;
};

constexpr std::uint32_t kBatch = 2;
constexpr std::uint32_t kChannels = 70;

const Case kCases[] = {
    {16, 16, {2, 2}, {2, 2}, 0, false, 8, 8}, {16, 16, {3, 3}, {2, 2}, 1, false, 8, 8},
    {16, 16, {3, 3}, {2, 2}, 1, true, 9, 9},  {16, 16, {2, 2}, {3, 3}, 1, true, 6, 6},
    {7, 9, {3, 2}, {2, 1}, 1, true, 4, 10},
};

/// Calls `visit(position)` for the inputs of output (y, x).
template <typename Visit>
void window(const Case& c, std::uint32_t y, std::uint32_t x, const Visit& visit) {
    for (std::uint32_t ky = 0; ky < c.kernel[0]; ++ky) {
        for (std::uint32_t kx = 0; kx < c.kernel[1]; ++kx) {
            const std::uint32_t source_y = y * c.stride[0] + ky - c.padding;
            const std::uint32_t source_x = x * c.stride[1] + kx - c.padding;
            if (source_y < c.height && source_x < c.width) {
                visit(source_y * c.width + source_x);
            }
        }
    }
}

template <typename Function>
void for_each_output(const Case& c, const Function& function) {
    for (std::uint32_t n = 0; n < kBatch; ++n) {
        for (std::uint32_t y = 0; y < c.output_height; ++y) {
            for (std::uint32_t x = 0; x < c.output_width; ++x) {
                for (std::uint32_t channel = 0; channel < kChannels; ++channel) {
                    function(n, y, x, channel);
                }
            }
        }
    }
}

void test_max() {
    for (const Case& c : kCases) {
        const Tensor input = draw_tensor(Shape({1, 1, kBatch * c.height * c.width, kChannels}),
                                         DataType::BFLOAT16, Layout::ROW_MAJOR);
        const auto values = values_of(input);
        std::vector<float> maxima;
        std::vector<float> positions;
        for_each_output(c, [&](auto n, auto y, auto x, auto channel) {
            float maximum = -2;
            std::uint32_t best = 0;
            window(c, y, x, [&](std::uint32_t position) {
                const float value =
                    values[(n * c.height * c.width + position) * kChannels + channel];
                if (value > maximum) {
                    maximum = value;
                    best = position;
                }
            });
            maxima.push_back(maximum);
            positions.push_back(static_cast<float>(best));
        });
        const auto result =
            ttnn::max_pool2d(input, kBatch, c.height, c.width, kChannels, c.kernel, c.stride,
                             Pair{c.padding, c.padding}, {1, 1}, c.ceil_mode, std::nullopt,
                             std::nullopt, std::nullopt, false, true, true);
        expect(result.size() == 2, "output and indices");
        expect_shape(result[0],
                     Shape({1, 1, kBatch * c.output_height * c.output_width, kChannels}));
        expect(result[0].is_sharded() && result[0].layout() == Layout::ROW_MAJOR, "sharded rows");
        expect(result[1].dtype() == DataType::UINT16, "indices");
        expect_close(values_of(result[0]), maxima, 0);
        expect_close(values_of(result[1]), positions, 0);
    }
}

void test_average() {
    for (const Case& c : kCases) {
        for (const bool count_padding : {false, true}) {
            const Tensor input = draw_tensor(Shape({kBatch, c.height, c.width, kChannels}),
                                             DataType::BFLOAT16, Layout::ROW_MAJOR);
            const auto values = values_of(input);
            std::vector<float> expected;
            for_each_output(c, [&](auto n, auto y, auto x, auto channel) {
                double sum = 0;
                std::uint32_t count = 0;
                window(c, y, x, [&](std::uint32_t position) {
                    sum += values[(n * c.height * c.width + position) * kChannels + channel];
                    ++count;
                });
                if (count_padding) {
                    const auto inside = [&](std::uint32_t start, std::uint32_t kernel,
                                            std::uint32_t size) {
                        return std::min(start + kernel, size + 2 * c.padding) - start;
                    };
                    count = inside(y * c.stride[0], c.kernel[0], c.height) *
                            inside(x * c.stride[1], c.kernel[1], c.width);
                }
                expected.push_back(static_cast<float>(sum / count));
            });
            expect_close(values_of(ttnn::avg_pool2d(input, kBatch, c.height, c.width, kChannels,
                                                    c.kernel, c.stride, Pair{c.padding, c.padding},
                                                    c.ceil_mode, count_padding)),
                         expected, 0.01);
        }
    }
}

void test_shares() {
    const auto mean_of_ones = [](std::uint32_t kernel,
                                 const std::optional<ttnn::DeviceComputeKernelConfig>& config) {
        const Tensor ones = make_tensor(Shape({1, kernel, kernel, 32}),
                                        std::vector<float>(std::size_t{kernel} * kernel * 32, 1.0F),
                                        DataType::BFLOAT16, Layout::ROW_MAJOR);
        return values_of(ttnn::avg_pool2d(ones, 1, kernel, kernel, 32, {kernel, kernel}, {1, 1},
                                          Pair{0, 0}, false, true, std::nullopt, std::nullopt,
                                          std::nullopt, std::nullopt, config))[0];
    };
    expect(mean_of_ones(3, std::nullopt) == 0.99609375F, "a ninth is cut to bfloat16");
    expect(mean_of_ones(4, std::nullopt) == 1.0F, "a sixteenth is exact");
    const float wide = mean_of_ones(17, std::nullopt);
    const ttnn::DeviceComputeKernelConfig narrow{.math_fidelity = tt::tt_metal::MathFidelity::HiFi4,
                                                 .fp32_dest_acc_en = false};
    expect(wide == 0.99609375F, "large windows have sums of 32 bits");
    expect(mean_of_ones(17, narrow) != wide, "sums of 16 bits lose some");
}

void test_dilation() {
    const Tensor input = make_tensor(Shape({1, 5, 1, 1}), {5, 9, 1, 2, 3}, DataType::BFLOAT16);
    const auto result = ttnn::max_pool2d(input, 1, 5, 1, 1, {3, 1}, {1, 1},
                                         std::array<std::uint32_t, 4>{1, 1, 0, 0}, {2, 1});
    expect_close(values_of(result[0]), {9, 5, 9}, 0);
}

void test_global_and_adaptive() {
    const Tensor input = draw_tensor(Shape({2, 7, 6, 33}), DataType::BFLOAT16);
    const auto values = values_of(input);
    std::vector<float> means(2 * 33);
    for (std::size_t i = 0; i < values.size(); ++i) {
        means[i / (42 * 33) * 33 + i % 33] += values[i] / 42.0F;
    }
    const Tensor global = ttnn::global_avg_pool2d(input);
    expect_shape(global, Shape({2, 1, 1, 33}));
    expect_close(values_of(global), means, 0.01);
    expect_close(values_of(ttnn::adaptive_avg_pool2d(input, 2, 7, 6, 33, {1, 1})), means, 0.01);
    const Tensor line = make_tensor(Shape({1, 5, 1, 1}), {1, 2, 3, 4, 5}, DataType::BFLOAT16);
    expect_close(values_of(ttnn::adaptive_max_pool2d(line, 1, 5, 1, 1, {3, 1})), {2, 4, 5}, 0);
    expect_refused([&] { ttnn::adaptive_max_pool2d(line, 1, 5, 1, 1, {7, 1}); }, "not supported");
}

void test_refusals() {
    const Tensor input = draw_tensor(Shape({1, 1, 256, 32}), DataType::BFLOAT16, Layout::ROW_MAJOR);
    const auto pool = [](const Tensor& tensor, Pair kernel, Pair stride, std::uint32_t padding) {
        ttnn::max_pool2d(tensor, 1, 16, 16, 32, kernel, stride, Pair{padding, padding}, {1, 1});
    };
    expect_refused([&] { pool(input, {2, 2}, {2, 2}, 2); }, "should not exceed half");
    expect_refused([&] { pool(input, {2, 2}, {0, 2}, 0); }, "Stride must be greater than 0");
    expect_refused([&] { pool(input, {17, 17}, {1, 1}, 0); }, "larger than the padded input");
    expect_refused([&] { pool(draw_tensor(Shape({1, 1, 256, 32})), {2, 2}, {2, 2}, 0); },
                   "Only BFLOAT16");
    expect_refused(
        [&] { pool(draw_tensor(Shape({1, 256, 32}), DataType::BFLOAT16), {2, 2}, {2, 2}, 0); },
        "rank-3");
    expect_refused(
        [&] { pool(draw_tensor(Shape({1, 1, 255, 32}), DataType::BFLOAT16), {2, 2}, {2, 2}, 0); },
        "has not the 8192 elements");
}

}  // namespace

int main() {
    test_max();
    test_average();
    test_shares();
    test_dilation();
    test_global_and_adaptive();
    test_refusals();
}
