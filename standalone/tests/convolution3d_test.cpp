#include "compute_testing.hpp"
#include "ttnn/operations/experimental/conv3d/conv3d.hpp"
#include "ttnn/operations/experimental/conv3d/prepare_conv3d_weights.hpp"

using namespace compute_testing;

namespace {

constexpr std::uint32_t kDepth = 4, kHeight = 5, kWidth = 6, kChannels = 64, kOutputs = 10;
constexpr std::array<std::uint32_t, 3> kKernel{2, 3, 3}, kStride{1, 2, 1}, kPadding{1, 0, 1};
constexpr std::uint32_t kOutDepth = 5, kOutHeight = 2, kOutWidth = 6;

/// `present` of the input's channels are used, in `groups`.
std::vector<float> reference(const std::vector<float>& input, const std::vector<float>& weights,
                             std::uint32_t present, std::uint32_t groups) {
    const std::uint32_t width = present / groups;
    std::vector<float> result;
    for (std::uint32_t z = 0; z < kOutDepth; ++z) {
        for (std::uint32_t y = 0; y < kOutHeight; ++y) {
            for (std::uint32_t x = 0; x < kOutWidth; ++x) {
                for (std::uint32_t o = 0; o < kOutputs; ++o) {
                    double sum = 0;
                    for (std::uint32_t k = 0; k < 18; ++k) {
                        const std::uint32_t source_z = z * kStride[0] + k / 9 - kPadding[0];
                        const std::uint32_t source_y = y * kStride[1] + k / 3 % 3 - kPadding[1];
                        const std::uint32_t source_x = x * kStride[2] + k % 3 - kPadding[2];
                        if (source_z >= kDepth || source_y >= kHeight || source_x >= kWidth) {
                            continue;
                        }
                        for (std::uint32_t i = 0; i < width; ++i) {
                            const std::uint32_t channel = o / (kOutputs / groups) * width + i;
                            sum += input[((source_z * kHeight + source_y) * kWidth + source_x) *
                                             kChannels +
                                         channel] *
                                   weights[(o * width + i) * 18 + k];
                        }
                    }
                    result.push_back(static_cast<float>(sum));
                }
            }
        }
    }
    return result;
}

Tensor convolve(const Tensor& input, const Tensor& weights, std::uint32_t groups,
                const std::optional<Tensor>& bias = std::nullopt) {
    return ttnn::experimental::conv3d(input, weights, device(), bias, std::nullopt,
                                      DataType::FLOAT32, kOutputs, kKernel, kStride, kPadding,
                                      {1, 1, 1}, "zeros", groups);
}

Tensor draw_input() {
    return draw_tensor(Shape({1, kDepth, kHeight, kWidth, kChannels}), DataType::FLOAT32,
                       Layout::ROW_MAJOR);
}

void test_values() {
    const Tensor input = draw_input();
    for (const auto& [present, groups] : {std::pair{64U, 1U}, {40U, 1U}, {40U, 2U}}) {
        const Tensor weights = draw_tensor(Shape({kOutputs, present / groups, 2, 3, 3}),
                                           DataType::FLOAT32, Layout::ROW_MAJOR, 2, true);
        const auto expected = reference(values_of(input), values_of(weights), present, groups);
        const Tensor result = convolve(input, weights, groups);
        expect_shape(result, Shape({1, kOutDepth, kOutHeight, kOutWidth, kOutputs}));
        expect(result.layout() == Layout::ROW_MAJOR, "rows");
        expect_close(values_of(result), expected, 0.04);
        const Tensor prepared = ttnn::operations::experimental::conv3d::prepare_conv3d_weights(
            weights, groups, 32, 32, device());
        expect_shape(prepared, Shape({64 * 18, kOutputs}));
        expect_close(values_of(convolve(input, prepared, groups)), expected, 0.04);
    }
}

void test_bias_and_refusals() {
    const Tensor input = draw_input();
    const Tensor weights =
        draw_tensor(Shape({kOutputs, 64, 2, 3, 3}), DataType::FLOAT32, Layout::ROW_MAJOR, 2, true);
    const Tensor bias = draw_tensor(Shape({1, kOutputs}), DataType::FLOAT32, Layout::TILE, 3);
    auto expected = reference(values_of(input), values_of(weights), 64, 1);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i] += values_of(bias)[i % kOutputs];
    }
    expect_close(values_of(convolve(input, weights, 1, bias)), expected, 0.04);
    expect_refused(
        [&] {
            convolve(input,
                     draw_tensor(Shape({kOutputs, 16, 2, 3, 3}), DataType::FLOAT32,
                                 Layout::ROW_MAJOR, 2, true),
                     1);
        },
        "patch size");
    expect_refused([&] { convolve(input, weights, 3); }, "divisible by groups");
    expect_refused(
        [&] { convolve(draw_tensor(Shape({1, kDepth, kHeight, kWidth, kChannels})), weights, 1); },
        "row-major");
}

}  // namespace

int main() {
    test_values();
    test_bias_and_refusals();
}
