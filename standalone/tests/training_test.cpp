#include "compute_testing.hpp"
#include "ttnn/operations/experimental/dropout/dropout.hpp"
#include "ttnn/operations/experimental/unary_backward/gelu_backward/gelu_backward.hpp"

using namespace compute_testing;

namespace {

double gelu(double x, bool approximate) {
    if (approximate) {
        return 0.5 * x *
               (1 + std::tanh(std::sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x)));
    }
    return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
}

void test_gelu_backward() {
    const Tensor input = make_tensor(Shape({1, 1, 10, 20}), draw(200, -4, 4));
    const Tensor gradient = draw_tensor(Shape({1, 1, 10, 20}), DataType::FLOAT32, Layout::TILE, 2);
    for (const bool approximate : {false, true}) {
        auto expected = values_of(gradient);
        for (std::size_t i = 0; i < expected.size(); ++i) {
            const double x = values_of(input)[i];
            const double slope = (gelu(x + 1e-5, approximate) - gelu(x - 1e-5, approximate)) / 2e-5;
            expected[i] *= static_cast<float>(slope);
        }
        expect_close(
            values_of(ttnn::experimental::gelu_bw(gradient, input, approximate ? "tanh" : "none")),
            expected, 1e-5);
    }
    expect_refused([&] { ttnn::experimental::gelu_bw(gradient, input, "fast"); }, "approximate");
}

void test_dropout() {
    const Tensor input =
        make_tensor(Shape({100, 100}), std::vector<float>(10000, 1.0F), DataType::BFLOAT16);
    const auto values = values_of(ttnn::experimental::dropout(input, 0.25F, 2.0F, 7));
    std::size_t dropped = 0;
    for (const float value : values) {
        expect(value == 0.0F || value == 2.0F, "dropped or scaled");
        dropped += value == 0.0F ? 1 : 0;
    }
    expect(dropped > 2300 && dropped < 2700, std::to_string(dropped) + " of 10000 dropped");
    expect_close(values_of(ttnn::experimental::dropout(input, 0.25F, 2.0F, 7)), values, 0);
    expect_refused([] { ttnn::experimental::dropout(draw_tensor(Shape({4, 4})), 0.5F, 2.0F, 1); },
                   "data types to match");
}

}  // namespace

int main() {
    test_gelu_backward();
    test_dropout();
}
