#include "compute_testing.hpp"
#include "ttnn/operations/conv/conv1d/conv1d.hpp"
#include "ttnn/operations/conv/conv2d/conv2d.hpp"
#include "ttnn/operations/conv/conv_transpose2d/conv_transpose2d.hpp"

using namespace compute_testing;

namespace {

struct Case {
    std::uint32_t batch, height, width, in_channels, out_channels;
    std::array<std::uint32_t, 2> kernel;
    std::array<std::uint32_t, 2> stride = {1, 1};
    std::array<std::uint32_t, 4> padding = {0, 0, 0, 0};
    std::array<std::uint32_t, 2> dilation = {1, 1};
    std::uint32_t groups = 1;

    std::uint32_t output(int axis) const {
        const std::uint32_t size = axis == 0 ? height : width;
        const std::uint32_t sides = axis == 0 ? padding[0] + padding[1] : padding[2] + padding[3];
        const auto i = static_cast<std::size_t>(axis);
        return (size + sides - dilation[i] * (kernel[i] - 1) - 1) / stride[i] + 1;
    }
    Shape input_shape() const { return Shape({batch, height, width, in_channels}); }
    Shape weight_shape() const {
        return Shape({out_channels, in_channels / groups, kernel[0], kernel[1]});
    }
    Shape output_shape() const {
        return Shape({1, 1, batch * output(0) * output(1), out_channels});
    }
};

std::vector<float> reference(const Case& c, const std::vector<float>& input,
                             const std::vector<float>& weights) {
    std::vector<float> result;
    const std::uint32_t group_in = c.in_channels / c.groups;
    const std::uint32_t group_out = c.out_channels / c.groups;
    for (std::uint32_t n = 0; n < c.batch; ++n) {
        for (std::uint32_t y = 0; y < c.output(0); ++y) {
            for (std::uint32_t x = 0; x < c.output(1); ++x) {
                for (std::uint32_t o = 0; o < c.out_channels; ++o) {
                    double sum = 0;
                    for (std::uint32_t i = 0; i < group_in; ++i) {
                        for (std::uint32_t ky = 0; ky < c.kernel[0]; ++ky) {
                            for (std::uint32_t kx = 0; kx < c.kernel[1]; ++kx) {
                                const int source_y =
                                    static_cast<int>(y * c.stride[0] + ky * c.dilation[0]) -
                                    static_cast<int>(c.padding[0]);
                                const int source_x =
                                    static_cast<int>(x * c.stride[1] + kx * c.dilation[1]) -
                                    static_cast<int>(c.padding[2]);
                                if (source_y < 0 || source_x < 0 ||
                                    source_y >= static_cast<int>(c.height) ||
                                    source_x >= static_cast<int>(c.width)) {
                                    continue;
                                }
                                const std::size_t at =
                                    ((n * c.height + static_cast<std::size_t>(source_y)) * c.width +
                                     static_cast<std::size_t>(source_x)) *
                                        c.in_channels +
                                    o / group_out * group_in + i;
                                sum +=
                                    static_cast<double>(input[at]) *
                                    weights[((o * group_in + i) * c.kernel[0] + ky) * c.kernel[1] +
                                            kx];
                            }
                        }
                    }
                    result.push_back(static_cast<float>(sum));
                }
            }
        }
    }
    return result;
}

Tensor convolve(const Case& c, const Tensor& input, const Tensor& weights,
                const std::optional<const Tensor>& bias = std::nullopt,
                const std::optional<const ttnn::Conv2dConfig>& config = std::nullopt) {
    return std::get<Tensor>(ttnn::conv2d(input, weights, device(), c.in_channels, c.out_channels,
                                         c.batch, c.height, c.width, c.kernel, c.stride, c.padding,
                                         c.dilation, c.groups, std::nullopt, bias, config));
}

void test_values() {
    const Case cases[] = {
        {1, 8, 8, 32, 64, {3, 3}, {1, 1}, {1, 1, 1, 1}},
        {2, 14, 11, 3, 16, {7, 7}, {2, 2}, {3, 3, 3, 3}},
        {1, 9, 7, 300, 40, {1, 1}},
        {2, 9, 7, 20, 40, {1, 1}, {2, 2}},
        {1, 10, 12, 8, 8, {3, 2}, {1, 2}, {0, 2, 1, 0}, {2, 1}},
        {1, 10, 12, 6, 10, {3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}},
        {1, 8, 8, 12, 18, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 3},
        {2, 9, 8, 70, 70, {3, 3}, {2, 1}, {1, 1, 1, 1}, {1, 1}, 70},
        {1, 6, 6, 5, 1, {6, 6}},
    };
    for (const Case& c : cases) {
        for (const DataType dtype : {DataType::FLOAT32, DataType::BFLOAT16}) {
            const Tensor input = draw_tensor(c.input_shape(), dtype, Layout::ROW_MAJOR, 1);
            const Tensor weights = draw_tensor(c.weight_shape(), dtype, Layout::ROW_MAJOR, 2, true);
            const auto expected = reference(c, values_of(input), values_of(weights));
            // The second and third convolution use the packed form that the buffer keeps.
            for (int repetition = 0; repetition < 3; ++repetition) {
                const Tensor result = convolve(c, input, weights);
                expect_shape(result, c.output_shape());
                expect(result.dtype() == dtype && result.layout() == Layout::TILE, "type");
                expect_close(values_of(result), expected, engine_tolerance_of(dtype));
            }
        }
    }
}

void test_bias_and_activation() {
    const Case c{1, 5, 5, 8, 12, {3, 3}};
    const Tensor input = draw_tensor(c.input_shape());
    const Tensor weights =
        draw_tensor(c.weight_shape(), DataType::FLOAT32, Layout::ROW_MAJOR, 2, true);
    const Tensor bias =
        draw_tensor(Shape({1, 1, 1, 12}), DataType::FLOAT32, Layout::ROW_MAJOR, 3, true);
    auto expected = reference(c, values_of(input), values_of(weights));
    for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i] = std::max(0.0F, expected[i] + values_of(bias)[i % 12]);
    }
    ttnn::Conv2dConfig config;
    config.activation =
        ttnn::operations::unary::UnaryWithParam(ttnn::operations::unary::UnaryOpType::RELU);
    expect_close(values_of(convolve(c, input, weights, bias, config)), expected,
                 engine_tolerance_of(DataType::FLOAT32));
}

void test_replicated_edge() {
    const Tensor input = make_tensor(Shape({1, 1, 2, 1}), {1, 2}, DataType::FLOAT32);
    const Tensor weights =
        make_tensor(Shape({1, 1, 1, 3}), {1, 10, 100}, DataType::FLOAT32, Layout::ROW_MAJOR, true);
    ttnn::Conv2dConfig config;
    config.padding_mode = ttnn::operations::sliding_window::PaddingMode::Replicate;
    const Case c{1, 1, 2, 1, 1, {1, 3}, {1, 1}, {0, 0, 1, 1}};
    expect_close(values_of(convolve(c, input, weights, std::nullopt, config)), {211, 221}, 0);
}

void test_results() {
    const Case c{1, 6, 5, 4, 8, {3, 3}};
    const Tensor input = draw_tensor(c.input_shape(), DataType::BFLOAT16, Layout::ROW_MAJOR);
    const Tensor weights =
        draw_tensor(c.weight_shape(), DataType::BFLOAT16, Layout::ROW_MAJOR, 2, true);
    const auto all =
        ttnn::conv2d(input, weights, device(), 4, 8, 1, 6, 5, {3, 3}, {1, 1},
                     std::array<std::uint32_t, 2>{0, 0}, {1, 1}, 1, DataType::FLOAT32, std::nullopt,
                     std::nullopt, std::nullopt, std::nullopt, std::nullopt, true, true);
    const auto& [output, size, parameters] = std::get<3>(all);
    expect(output.dtype() == DataType::FLOAT32, "asked-for type");
    expect(size == std::tuple(4U, 3U), "output size");
    expect(!std::get<1>(parameters), "no bias");
    expect_close(values_of(convolve(c, input, std::get<0>(parameters))),
                 values_of(convolve(c, input, weights)), 0);
}

void test_conv1d() {
    const Case c{2, 1, 20, 6, 10, {1, 3}, {1, 2}, {0, 0, 1, 1}};
    const Tensor input = draw_tensor(Shape({2, 20, 6}));
    const Tensor weights =
        draw_tensor(Shape({10, 6, 3}), DataType::FLOAT32, Layout::ROW_MAJOR, 2, true);
    const auto result =
        ttnn::conv1d(input, weights, device(), 6, 10, 2, 20, 3, 2, 1U, 1, 1, std::nullopt,
                     std::nullopt, std::nullopt, std::nullopt, std::nullopt, true, false);
    const auto& [output, length] = std::get<1>(result);
    expect(length == 10, "output length");
    expect_close(values_of(output), reference(c, values_of(input), values_of(weights)),
                 engine_tolerance_of(DataType::FLOAT32));
}

void test_transposed() {
    for (const std::uint32_t groups : {1U, 2U}) {
        const std::uint32_t in = 4, out = 6, height = 5, width = 4, stride = 2, padding = 1;
        const std::uint32_t out_height = (height - 1) * stride - 2 * padding + 3 + 1;
        const std::uint32_t out_width = (width - 1) * stride - 2 * padding + 2 + 1;
        const Tensor input = draw_tensor(Shape({2, height, width, in}));
        const Tensor weights = draw_tensor(Shape({in, out / groups, 3, 2}), DataType::FLOAT32,
                                           Layout::ROW_MAJOR, 2, true);
        std::vector<float> expected(2 * out_height * out_width * out);
        const auto values = values_of(input);
        const auto kernel = values_of(weights);
        for (std::size_t i = 0; i < values.size(); ++i) {
            const std::size_t channel = i % in;
            const std::size_t x = i / in % width;
            const std::size_t y = i / in / width % height;
            const std::size_t n = i / in / width / height;
            for (std::size_t o = 0; o < out / groups; ++o) {
                for (std::size_t k = 0; k < 6; ++k) {
                    const std::size_t target_y = y * stride + k / 2 - padding;
                    const std::size_t target_x = x * stride + k % 2 - padding;
                    if (target_y >= out_height || target_x >= out_width) {
                        continue;
                    }
                    const std::size_t target_channel = channel / (in / groups) * (out / groups) + o;
                    expected[((n * out_height + target_y) * out_width + target_x) * out +
                             target_channel] +=
                        values[i] * kernel[(channel * (out / groups) + o) * 6 + k];
                }
            }
        }
        const auto result = ttnn::conv_transpose2d(
            input, weights, device(), in, out, 2, height, width, {3, 2}, {stride, stride},
            std::array<std::uint32_t, 2>{padding, padding}, {1, 1}, {1, 1}, groups);
        expect_close(values_of(std::get<0>(result)), expected,
                     engine_tolerance_of(DataType::FLOAT32));
    }
}

void test_refusals() {
    const Case c{1, 6, 6, 4, 8, {3, 3}};
    const Tensor input = draw_tensor(c.input_shape());
    const Tensor weights =
        draw_tensor(c.weight_shape(), DataType::FLOAT32, Layout::ROW_MAJOR, 2, true);
    const auto with_weights = [&](const Shape& shape, DataType dtype, Layout layout) {
        convolve(c, input, draw_tensor(shape, dtype, layout, 2, true));
    };
    expect_refused([&] { with_weights(Shape({8, 4, 3, 3}), DataType::FLOAT32, Layout::TILE); },
                   "row_major");
    expect_refused([&] { with_weights(Shape({8, 5, 3, 3}), DataType::FLOAT32, Layout::ROW_MAJOR); },
                   "must have the shape (8, 4, 3, 3)");
    expect_refused([&] { with_weights(Shape({8, 4, 3, 3}), DataType::INT32, Layout::ROW_MAJOR); },
                   "Unsupported data type");
    expect_refused([&] { convolve({1, 5, 6, 4, 8, {3, 3}}, input, weights); }, "different volumes");
    expect_refused([&] { convolve({1, 6, 6, 4, 8, {7, 3}}, input, weights); }, "larger than");
    expect_refused([&] { convolve({1, 6, 6, 4, 8, {3, 3}, {0, 1}}, input, weights); },
                   "must be positive");
    expect_refused(
        [&] { convolve({1, 6, 6, 4, 8, {3, 3}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 3}, input, weights); },
        "divisible by 3 groups");
    expect_refused(
        [&] {
            convolve(c, input, weights,
                     draw_tensor(Shape({1, 8}), DataType::FLOAT32, Layout::ROW_MAJOR));
        },
        "(1, 1, 1, 8)");
    expect_refused(
        [&] {
            convolve(c, input, weights,
                     draw_tensor(Shape({1, 1, 1, 7}), DataType::FLOAT32, Layout::ROW_MAJOR));
        },
        "same length as output channels");
}

}  // namespace

int main() {
    test_values();
    test_bias_and_activation();
    test_replicated_edge();
    test_results();
    test_conv1d();
    test_transposed();
    test_refusals();
}
