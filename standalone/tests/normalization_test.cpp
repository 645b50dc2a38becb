#include "compute/sharding.hpp"
#include "compute_testing.hpp"
#include "ttnn/operations/core/core.hpp"
#include "ttnn/operations/normalization/batch_norm/batch_norm.hpp"
#include "ttnn/operations/normalization/groupnorm/groupnorm.hpp"
#include "ttnn/operations/normalization/layernorm/layernorm.hpp"
#include "ttnn/operations/normalization/rmsnorm/rmsnorm.hpp"
#include "ttnn/operations/normalization/softmax/softmax.hpp"

using namespace compute_testing;

namespace {

/// softmax along the middle of (outer, size, inner).
std::vector<float> reference_softmax(std::vector<float> values, std::size_t outer, std::size_t size,
                                     std::size_t inner) {
    for (std::size_t o = 0; o < outer; ++o) {
        for (std::size_t i = 0; i < inner; ++i) {
            double sum = 0;
            const auto at = [&](std::size_t s) -> float& {
                return values[(o * size + s) * inner + i];
            };
            for (std::size_t s = 0; s < size; ++s) {
                sum += std::exp(static_cast<double>(at(s)));
            }
            for (std::size_t s = 0; s < size; ++s) {
                at(s) = static_cast<float>(std::exp(static_cast<double>(at(s))) / sum);
            }
        }
    }
    return values;
}

/// The reciprocal of a softmax is approximate by default, and types other than float32 are rounded
/// to 16 bits in every step.
constexpr double kApproximate = 0.1;

void test_softmax() {
    for (const DataType dtype : {DataType::FLOAT32, DataType::BFLOAT16}) {
        const Tensor input = draw_tensor(Shape({2, 3, 30, 150}), dtype);
        const auto check = [&](int dim, std::size_t outer, std::size_t size, std::size_t inner) {
            const Tensor result = ttnn::softmax(input, dim);
            expect(result.dtype() == dtype && result.layout() == Layout::TILE, "type");
            expect_close(values_of(result), reference_softmax(values_of(input), outer, size, inner),
                         kApproximate);
        };
        check(-1, 2 * 3 * 30, 150, 1);
        check(2, 2 * 3, 30, 150);
        check(1, 2, 3, 30 * 150);
        check(0, 1, 2, 3 * 30 * 150);
    }
    const auto large = values_of(ttnn::softmax(make_tensor(Shape({1, 2}), {1000, 1000}), 1));
    expect_close(large, {0.5F, 0.5F}, kApproximate);
    Tensor in_place = draw_tensor(Shape({1, 2, 3, 40}));
    const auto expected = reference_softmax(values_of(in_place), 6, 40, 1);
    ttnn::softmax_in_place(in_place);
    expect_close(values_of(in_place), expected, kApproximate);
}

void test_scale_mask_softmax() {
    const Tensor input = draw_tensor(Shape({2, 3, 5, 40}));
    for (const std::uint32_t height : {1U, 5U}) {
        const Tensor mask =
            draw_tensor(Shape({2, 1, height, 40}), DataType::FLOAT32, Layout::TILE, 7);
        const auto mask_values = values_of(mask);
        for (const bool is_causal : {false, true}) {
            auto scores = values_of(input);
            for (std::size_t i = 0; i < scores.size(); ++i) {
                const std::size_t batch = i / (3 * 5 * 40);
                const std::size_t row = is_causal ? i / 40 % 5 : 0;
                scores[i] =
                    scores[i] * 0.5F + mask_values[(batch * height + row % height) * 40 + i % 40];
            }
            const auto masked = [&] {
                return ttnn::scale_mask_softmax(input, 0.5F, mask, std::nullopt, is_causal);
            };
            if (is_causal && height == 1) {
                expect_refused(masked, "A causal mask must have height 5, got: 1");
            } else {
                expect_close(values_of(masked()), reference_softmax(scores, 2 * 3 * 5, 40, 1),
                             kApproximate);
            }
        }
    }
}

void test_masks_of_sharded_softmax() {
    using namespace ttcodegen::cpu;
    const Tensor scores = draw_tensor(Shape({2, 1, 32, 64}), DataType::BFLOAT16);
    const auto sharded = [](const Tensor& tensor) {
        return ttnn::to_memory_config(tensor,
                                      sharded_l1(TensorMemoryLayout::HEIGHT_SHARDED, 64, 64, 32));
    };
    const ttnn::SoftmaxShardedMultiCoreProgramConfig program{
        .compute_with_storage_grid_size = {2, 1}, .subblock_w = 1, .block_h = 1, .block_w = 2};
    const auto expected = [&](const auto& added) {
        auto values = values_of(scores);
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = values[i] * 0.5F + added(i);
        }
        return reference_softmax(values, 2 * 32, 64, 1);
    };
    const auto masked = [&](const Tensor& mask, bool is_causal) {
        return ttnn::scale_mask_softmax_in_place(sharded(scores), 0.5F, mask, program, is_causal);
    };
    const Tensor mask = draw_tensor(Shape({2, 1, 32, 64}), DataType::BFLOAT16, Layout::TILE, 7);
    expect_close(values_of(masked(sharded(mask), true)),
                 expected([&](std::size_t i) { return values_of(mask)[i]; }), kApproximate);
    expect_refused([&] { masked(sharded(mask), false); }, "A sharded mask must be causal");
    const Tensor rows = draw_tensor(Shape({2, 1, 2, 32}), DataType::BFLOAT16, Layout::ROW_MAJOR, 7);
    expect_close(values_of(masked(rows, false)), expected([&](std::size_t i) {
                     return values_of(rows)[i / (32 * 64) * 64 + i % 64];
                 }),
                 kApproximate);
    expect_refused([&] { masked(rows, true); }, "A causal mask must have TILE layout");
}

std::vector<float> reference_norm(std::vector<float> values, std::size_t width, double epsilon,
                                  bool subtract_mean, const std::vector<float>& weight,
                                  const std::vector<float>& bias) {
    for (std::size_t begin = 0; begin < values.size(); begin += width) {
        double mean = 0;
        double variance = 0;
        for (std::size_t i = 0; i < width; ++i) {
            mean += subtract_mean ? values[begin + i] / static_cast<double>(width) : 0;
        }
        for (std::size_t i = 0; i < width; ++i) {
            variance += std::pow(values[begin + i] - mean, 2) / static_cast<double>(width);
        }
        for (std::size_t i = 0; i < width; ++i) {
            const double normal = (values[begin + i] - mean) / std::sqrt(variance + epsilon);
            values[begin + i] = static_cast<float>(normal * weight[i] + bias[i]);
        }
    }
    return values;
}

/// By default rms_norm has sums of 16 bits, whatever its operands are.
const double kNarrow = engine_tolerance_of(DataType::BFLOAT16);

void test_row_norms() {
    for (const DataType dtype : {DataType::FLOAT32, DataType::BFLOAT16}) {
        const Tensor input = draw_tensor(Shape({2, 33, 96}), dtype);
        const Tensor weight = draw_tensor(Shape({1, 96}), dtype, Layout::TILE, 2);
        const Tensor bias = draw_tensor(Shape({96}), dtype, Layout::TILE, 3);
        const Tensor pieces =
            make_tensor(Shape({3, 32}), values_of(weight), dtype, Layout::ROW_MAJOR);
        const std::vector<float> ones(96, 1.0F);
        const std::vector<float> zeros(96, 0.0F);
        const auto check = [&](const Tensor& result, bool subtract_mean, const auto& scale,
                               const auto& offset) {
            expect(result.dtype() == dtype, "type");
            expect_close(values_of(result),
                         reference_norm(values_of(input), 96, 1e-5, subtract_mean, scale, offset),
                         subtract_mean ? engine_tolerance_of(dtype) : kNarrow);
        };
        check(ttnn::layer_norm(input, 1e-5F), true, ones, zeros);
        check(ttnn::layer_norm(input, 1e-5F, weight, bias), true, values_of(weight),
              values_of(bias));
        check(ttnn::layer_norm(input, 1e-5F, pieces), true, values_of(weight), zeros);
        check(ttnn::rms_norm(input, 1e-5F, weight), false, values_of(weight), zeros);
    }
    const Tensor input = draw_tensor(Shape({4, 64}));
    const Tensor residual = draw_tensor(Shape({4, 64}), DataType::FLOAT32, Layout::TILE, 9);
    auto sum = values_of(input);
    const auto added = values_of(residual);
    for (std::size_t i = 0; i < sum.size(); ++i) {
        sum[i] += added[i];
    }
    expect_close(values_of(ttnn::rms_norm(input, 0.1F, std::nullopt, std::nullopt, residual)),
                 reference_norm(sum, 64, 0.1, false, std::vector<float>(64, 1.0F),
                                std::vector<float>(64, 0.0F)),
                 kNarrow);
}

void test_batch_norm() {
    const Tensor input = draw_tensor(Shape({2, 3, 5, 7}));
    const Tensor mean = draw_tensor(Shape({1, 3, 1, 1}), DataType::FLOAT32, Layout::TILE, 2);
    const Tensor variance = make_tensor(Shape({1, 3, 1, 1}), {0.5F, 1.0F, 2.0F});
    const Tensor weight = draw_tensor(Shape({1, 3, 1, 1}), DataType::FLOAT32, Layout::TILE, 4);
    const Tensor bias = draw_tensor(Shape({1, 3, 1, 1}), DataType::FLOAT32, Layout::TILE, 5);
    auto expected = values_of(input);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const std::size_t channel = i / 35 % 3;
        expected[i] = (expected[i] - values_of(mean)[channel]) /
                          std::sqrt(values_of(variance)[channel] + 1e-3F) *
                          values_of(weight)[channel] +
                      values_of(bias)[channel];
    }
    expect_close(
        values_of(ttnn::batch_norm(input, mean, variance, false, 1e-3F, 0.1F, weight, bias)),
        expected, 1e-5);

    std::vector<double> sums(3);
    std::vector<double> squares(3);
    const auto values = values_of(input);
    for (std::size_t i = 0; i < values.size(); ++i) {
        sums[i / 35 % 3] += values[i] / 70.0;
        squares[i / 35 % 3] += std::pow(values[i], 2) / 70.0;
    }
    std::vector<float> normal(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t channel = i / 35 % 3;
        normal[i] =
            static_cast<float>((values[i] - sums[channel]) /
                               std::sqrt(squares[channel] - std::pow(sums[channel], 2) + 1e-5));
    }
    const float old_mean = values_of(mean)[1];
    expect_close(values_of(ttnn::batch_norm(input, mean, variance, true, 1e-5F, 0.25F)), normal,
                 1e-5);
    expect_close({values_of(mean)[1]}, {0.75F * old_mean + 0.25F * static_cast<float>(sums[1])},
                 1e-5);
}

void test_group_norm() {
    const Tensor input = draw_tensor(Shape({2, 1, 64, 96}), DataType::BFLOAT16);
    const auto values = values_of(input);
    const Tensor weight =
        draw_tensor(Shape({1, 1, 3, 32}), DataType::BFLOAT16, Layout::ROW_MAJOR, 2);
    std::vector<float> expected(values.size());
    for (std::size_t image = 0; image < 2; ++image) {
        for (std::size_t group = 0; group < 4; ++group) {
            std::vector<std::size_t> members;
            for (std::size_t pixel = 0; pixel < 64; ++pixel) {
                for (std::size_t channel = group * 24; channel < group * 24 + 24; ++channel) {
                    members.push_back((image * 64 + pixel) * 96 + channel);
                }
            }
            double mean = 0;
            double variance = 0;
            for (const std::size_t i : members) {
                mean += values[i] / static_cast<double>(members.size());
            }
            for (const std::size_t i : members) {
                variance += std::pow(values[i] - mean, 2) / static_cast<double>(members.size());
            }
            for (const std::size_t i : members) {
                expected[i] = static_cast<float>((values[i] - mean) / std::sqrt(variance + 1e-5)) *
                              values_of(weight)[i % 96];
            }
        }
    }
    const Tensor result =
        ttnn::group_norm(input, 4, 1e-5F, std::nullopt, weight, std::nullopt, std::nullopt,
                         std::nullopt, std::nullopt, std::nullopt, false);
    // Each step is rounded to bfloat16.
    expect_close(values_of(result), expected, 0.02);
    expect_refused(
        [&] {
            ttnn::group_norm(input, 4, 1e-5F, std::nullopt, weight, std::nullopt, std::nullopt,
                             std::nullopt, std::nullopt, std::nullopt, true);
        },
        "In-place operation not supported");
    // The C++ of the release has another default than its Python.
    ttnn::group_norm(input, 4, 1e-5F);
    expect_refused(
        [&] {
            ttnn::group_norm(input, 5, 1e-5F, std::nullopt, std::nullopt, std::nullopt,
                             std::nullopt, std::nullopt, std::nullopt, std::nullopt, false);
        },
        "must be divisible by the number of groups");
}

/// A group norm that is not in place, without parameters.
Tensor group_norm_on(const Tensor& input, int groups, std::optional<ttnn::CoreGrid> grid,
                     const std::optional<ttnn::MemoryConfig>& memory = std::nullopt) {
    return ttnn::group_norm(input, groups, 1e-5F, std::nullopt, std::nullopt, std::nullopt,
                            std::nullopt, memory, std::nullopt, grid, false);
}

void test_memory_of_group_norms() {
    using ttnn::CoreGrid;
    using ttnn::TensorMemoryLayout;
    const Tensor input = draw_tensor(Shape({1, 1, 256, 128}), DataType::BFLOAT16);
    const Tensor in_l1 = ttnn::to_memory_config(input, ttnn::L1_MEMORY_CONFIG);
    expect(group_norm_on(in_l1, 4, CoreGrid(2, 2)).memory_config().is_dram(),
           "a result is in DRAM unless another place is given");
    expect(group_norm_on(input, 4, std::nullopt, ttnn::L1_MEMORY_CONFIG).memory_config() ==
               ttnn::L1_MEMORY_CONFIG,
           "a result is where the call says");
    // Eight rows of tiles cannot be divided among three rows of cores.
    expect_refused([&] { group_norm_on(input, 4, CoreGrid(4, 3)); },
                   "Cannot find any valid core grid");
    // The mask of an interleaved tensor in L1 is divided among all cores, that of one in DRAM among
    // those across the channels.
    group_norm_on(input, 4, CoreGrid(4, 2));
    expect_refused([&] { group_norm_on(in_l1, 4, CoreGrid(4, 2)); },
                   "num_groups (4) must be divisible by num_cores_across_channel (8)");

    const auto sharded = [&](TensorMemoryLayout layout) {
        return ttnn::to_memory_config(input, ttcodegen::cpu::sharded_l1(layout, 256, 128, 32));
    };
    expect_refused(
        [&] { group_norm_on(sharded(TensorMemoryLayout::WIDTH_SHARDED), 4, std::nullopt); },
        "cannot be width-sharded");
    const Tensor rows = sharded(TensorMemoryLayout::HEIGHT_SHARDED);
    expect_refused([&] { group_norm_on(rows, 4, std::nullopt); },
                   "Only L1 buffers can have an associated circular buffer!");
    expect(group_norm_on(rows, 4, std::nullopt, rows.memory_config()).memory_config() ==
               rows.memory_config(),
           "shards are kept where the call says so");
}

/// 10 cores of a box of 16 (layernorm_device_operation.cpp of tt-metal 0.70.1).
void test_shards_without_rectangle() {
    using namespace tt::tt_metal;
    const auto rows_on = [](const std::set<CoreRange>& cores) {
        const ShardSpec shards(CoreRangeSet(cores), {32, 32}, ShardOrientation::ROW_MAJOR);
        return ttnn::to_memory_config(
            draw_tensor(Shape({32, 320}), DataType::BFLOAT16),
            MemoryConfig(TensorMemoryLayout::WIDTH_SHARDED, BufferType::L1, shards));
    };
    const Tensor rows = rows_on({CoreRange({0, 0}, {7, 0}), CoreRange({0, 1}, {1, 1})});
    const auto* refusal = "does not support non-rectangular core grids";
    expect_refused([&] { ttnn::rms_norm(rows, 1e-5F, {}, {}, {}, rows.memory_config()); }, refusal);
    expect_refused([&] { ttnn::layer_norm(rows, 1e-5F, {}, {}, {}, rows.memory_config()); },
                   refusal);
    const Tensor box = rows_on({CoreRange({0, 0}, {4, 1})});
    expect(ttnn::rms_norm(box, 1e-5F, {}, {}, {}, box.memory_config()).is_sharded(),
           "a rectangle of the same cores is taken");
}

void test_refusals() {
    const Tensor input = draw_tensor(Shape({32, 64}));
    const Tensor rows = draw_tensor(Shape({32, 50}), DataType::BFLOAT16, Layout::ROW_MAJOR);
    expect_refused([&] { ttnn::softmax(input, 2); }, "Dimension out of range");
    expect_refused([&] { ttnn::softmax(rows, 1); }, "must be tilized");
    expect_refused([&] { ttnn::softmax(draw_tensor(Shape({4}), DataType::INT32), 0); }, "INT32");
    expect_refused([&] { ttnn::softmax_in_place(input); }, "Invalid dimension: 1");
    expect_refused([&] { ttnn::scale_mask_softmax(input, 0.5F); }, "Scale value must not be set");
    expect_refused([&] { ttnn::layer_norm(rows); }, "multiple of tile width");
    expect_refused([&] { ttnn::rms_norm(rows); }, "ROW_MAJOR");
    expect_refused([&] { ttnn::layer_norm(input, 1e-5F, draw_tensor(Shape({1, 32}))); },
                   "inner dimensions must match");
    expect_refused(
        [&] {
            ttnn::layer_norm(input, 1e-5F,
                             draw_tensor(Shape({1, 64}), DataType::BFLOAT16, Layout::ROW_MAJOR));
        },
        "must align with input tensor");
    expect_refused([&] { ttnn::batch_norm(input); }, "rank < 4");
    expect_refused([&] { ttnn::batch_norm(draw_tensor(Shape({1, 1, 2, 2}))); },
                   "must be defined in evaluation mode");
}

}  // namespace

int main() {
    test_softmax();
    test_scale_mask_softmax();
    test_masks_of_sharded_softmax();
    test_row_norms();
    test_batch_norm();
    test_group_norm();
    test_memory_of_group_norms();
    test_shards_without_rectangle();
    test_refusals();
}
