// Precision of operands and sums under compute kernel configs and ttnn's defaults.

#include <cmath>
#include <limits>

#include "compute_testing.hpp"
#include "ttnn/operations/matmul/matmul.hpp"
#include "ttnn/operations/normalization/rmsnorm/rmsnorm.hpp"
#include "ttnn/operations/normalization/softmax/softmax.hpp"
#include "ttnn/operations/reduction/generic/generic_reductions.hpp"

using namespace compute_testing;

namespace {

using tt::tt_metal::MathFidelity;
using ttnn::DeviceComputeKernelConfig;

constexpr DeviceComputeKernelConfig config_of(MathFidelity fidelity, bool wide = true,
                                              bool approximate = false) {
    return {.math_fidelity = fidelity, .math_approx_mode = approximate, .fp32_dest_acc_en = wide};
}

float product(float a, float b, const DeviceComputeKernelConfig& config,
              DataType dtype = DataType::FLOAT32) {
    const Tensor left = make_tensor(Shape({1, 1}), {a}, dtype);
    const Tensor right = make_tensor(Shape({1, 1}), {b}, dtype);
    return values_of(ttnn::matmul(left, right, false, false, std::nullopt, DataType::FLOAT32,
                                  std::nullopt, std::nullopt, config))[0];
}

/// 1 + 2^-bits.
float above_one(int bits) { return 1.0F + std::ldexp(1.0F, -bits); }

void test_passes_of_the_multiplier() {
    struct Case {
        MathFidelity fidelity;
        int first;
        int second;
    };
    for (const auto& [fidelity, first, second] :
         {Case{MathFidelity::LoFi, 6, 4}, Case{MathFidelity::HiFi2, 6, 9},
          Case{MathFidelity::HiFi3, 10, 9}, Case{MathFidelity::HiFi4, 10, 9}}) {
        const DeviceComputeKernelConfig config = config_of(fidelity);
        expect(product(above_one(first), 1.0F, config) == above_one(first), "first is kept");
        expect(product(above_one(first + 1), 1.0F, config) == 1.0F, "first is cut");
        expect(product(1.0F, above_one(second), config) == above_one(second), "second is kept");
        expect(product(1.0F, above_one(second + 1), config) == 1.0F, "second is cut");
    }
}

/// An infinity in a row makes the mean of its squares infinite: nothing is left of the others, and
/// nothing is known of itself. torch.nn.functional.rms_norm has the same.
void test_norms_of_infinities() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const Tensor rows = make_tensor(Shape({2, 3}), {kInfinity, 1.0F, -2.0F, 1.0F, 1.0F, 1.0F});
    const auto found =
        values_of(ttnn::rms_norm(rows, 1e-5F, std::nullopt, std::nullopt, std::nullopt,
                                 std::nullopt, std::nullopt, config_of(MathFidelity::HiFi3)));
    expect(std::isnan(found[0]) && found[1] == 0.0F && found[2] == 0.0F, "the row of the infinity");
    for (std::size_t i = 3; i < 6; ++i) {
        expect(std::abs(found[i] - 1.0F) < 0.01F, "the other row");
    }
}

void test_narrow_sources() {
    const DeviceComputeKernelConfig config = config_of(MathFidelity::HiFi4, false);
    expect(product(above_one(7), 1.0F, config) == above_one(7), "bfloat16 is kept");
    expect(product(above_one(8), 1.0F, config) == 1.0F, "more is cut");
}

void test_widths_of_sums() {
    // 4096, and then tiles that add 8 each: half of bfloat16's unit there is 16.
    std::vector<float> values(32 * 9, 0.25F);
    std::fill_n(values.begin(), 32, 128.0F);
    const Tensor row = make_tensor(Shape({1, 288}), values, DataType::BFLOAT16);
    const Tensor ones =
        make_tensor(Shape({288, 1}), std::vector<float>(288, 1.0F), DataType::BFLOAT16);
    const auto sum = [&](bool wide) {
        return values_of(ttnn::matmul(row, ones, false, false, std::nullopt, DataType::FLOAT32,
                                      std::nullopt, std::nullopt,
                                      config_of(MathFidelity::HiFi4, wide)))[0];
    };
    expect(sum(true) == 4160.0F, "32 bits add them up");
    expect(sum(false) == 4096.0F, "16 bits swallow them");
    const auto reduced = [&](bool wide) {
        return values_of(
            ttnn::sum(row, 1, false, std::nullopt, config_of(MathFidelity::HiFi4, wide)))[0];
    };
    expect(reduced(true) == 4160.0F, "a reduction of 32 bits adds them up");
    expect(reduced(false) == 4096.0F, "one of 16 bits swallows them");
}

void test_reductions() {
    const Tensor row = make_tensor(Shape({1, 2}), {above_one(10), above_one(11)});
    expect(values_of(ttnn::max(row, 1))[0] == above_one(10), "maxima are TF32");
    const Tensor less = make_tensor(Shape({1, 2}), {above_one(11), 0.5F});
    expect(values_of(ttnn::max(less, 1))[0] == 1.0F, "maxima are cut");
    expect(values_of(ttnn::sum(less, 1))[0] == 1.5F, "summands are cut");
    // The scaler of means has the type of the elements, and is truncated to it.
    const Tensor thirds = make_tensor(Shape({1, 3}), {1.0F, 1.0F, 1.0F});
    expect_close(values_of(ttnn::mean(thirds, 1)), {1.0F}, 1.0 / 1024);
    const Tensor narrow = make_tensor(Shape({1, 3}), {128.0F, 128.0F, 128.0F}, DataType::BFLOAT16);
    expect(values_of(ttnn::mean(narrow, 1))[0] == 127.5F, "a third is 0.33203125 in bfloat16");
}

void test_softmax() {
    const Tensor scores = draw_tensor(Shape({40, 70}));
    const auto sums = [&](const std::optional<DeviceComputeKernelConfig>& config) {
        const auto values = values_of(ttnn::softmax(scores, 1, std::nullopt, config));
        std::vector<float> found(40);
        for (std::size_t i = 0; i < values.size(); ++i) {
            found[i / 70] += values[i];
        }
        return found;
    };
    const auto error = [](const std::vector<float>& rows) {
        float largest = 0;
        for (const float row : rows) {
            largest = std::max(largest, std::abs(row - 1.0F));
        }
        return largest;
    };
    const float exact = error(sums(config_of(MathFidelity::HiFi3)));
    const float approximate = error(sums(std::nullopt));
    expect(exact < 0.003F, "two steps of Newton's iteration");
    expect(approximate > 0.003F && approximate < 0.04F, "one step of it is the default");
    expect(sums(std::nullopt) == sums(config_of(MathFidelity::HiFi3, true, true)),
           "the default of float32");
}

void test_defaults_of_products() {
    const auto default_product = [](float a, float b, DataType dtype) {
        const Tensor left = make_tensor(Shape({1, 1}), {a}, dtype);
        const Tensor right = make_tensor(Shape({1, 1}), {b}, dtype);
        return values_of(ttnn::matmul(left, right))[0];
    };
    expect(default_product(above_one(7), 1.0F, DataType::BFLOAT16) == 1.0F, "HiFi2");
    expect(default_product(1.0F, above_one(7), DataType::BFLOAT16) == above_one(7), "HiFi2");
    expect(default_product(above_one(10), 1.0F, DataType::FLOAT32) == above_one(10), "HiFi3");
    expect(default_product(1.0F, above_one(5), DataType::BFLOAT8_B) == 1.0F, "LoFi");
}

}  // namespace

int main() {
    test_passes_of_the_multiplier();
    test_norms_of_infinities();
    test_narrow_sources();
    test_widths_of_sums();
    test_reductions();
    test_softmax();
    test_defaults_of_products();
}
