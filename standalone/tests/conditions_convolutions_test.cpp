// Convolutions and pools that violate one condition of tt-metal 0.70.1 each.

#include "conditions_testing.hpp"
#include "ttnn/operations/conv/conv2d/conv2d.hpp"
#include "ttnn/operations/conv/conv_transpose2d/conv_transpose2d.hpp"
#include "ttnn/operations/pool/generic/generic_pools.hpp"

using namespace conditions_testing;

namespace {

constexpr auto kRows = Layout::ROW_MAJOR;
constexpr auto kColumnMajor = ShardOrientation::COL_MAJOR;
constexpr std::uint32_t kChannels = 64;
/// Pixels along each side of the images.
constexpr std::uint32_t kSide = 16;
const Shape kImage({1, 1, kSide * kSide, kChannels});
using Slices = ttnn::Conv2dSliceConfig;
const Slices kTwoSlices{Slices::SliceType::DRAM_HEIGHT, 2};

/// A convolution of 3x3 that keeps the size of its image, in L1.
struct Convolution {
    Tensor input = placed(kImage, kL1);
    ttnn::Conv2dConfig config = of(kBlock);
    std::optional<Slices> slices;
    DataType dtype = DataType::BFLOAT16;
    std::array<std::uint32_t, 2> stride = {1, 1};
    std::array<std::uint32_t, 2> dilation = {1, 1};
    bool is_transposed = false;

    static ttnn::Conv2dConfig of(std::optional<TensorMemoryLayout> scheme) {
        ttnn::Conv2dConfig config;
        config.shard_layout = scheme;
        config.config_tensors_in_dram = true;
        return config;
    }

    void operator()() const {
        const Tensor weights =
            placed(Shape({kChannels, kChannels, 3, 3}), kDRAM, DataType::BFLOAT16, kRows).cpu();
        const std::array<std::uint32_t, 2> kernel = {3, 3}, padding = {1, 1};
        if (is_transposed) {
            (void)ttnn::conv_transpose2d(input, weights, device(), kChannels, kChannels, 1, kSide,
                                         kSide, kernel, stride, padding, {0, 0}, dilation, 1, dtype,
                                         std::nullopt, config, std::nullopt, std::nullopt, slices);
        } else {
            (void)ttnn::conv2d(input, weights, device(), kChannels, kChannels, 1, kSide, kSide,
                               kernel, stride, padding, dilation, 1, dtype, std::nullopt, config,
                               std::nullopt, std::nullopt, slices);
        }
    }
};

void test_convolutions() {
    for (const bool is_transposed : {false, true}) {
        Convolution convolution;
        convolution.is_transposed = is_transposed;
        check_rows<Convolution>(
            convolution, {
                             {"Conv output can't be in Row Major if output dtype is BFloat8_B.",
                              [](Convolution& c) {
                                  c.dtype = DataType::BFLOAT8_B;
                                  c.config.output_layout = kRows;
                              }},
                             {"Conv DRAM expects the input tensor to be in DRAM.",
                              [](Convolution& c) { c.slices = kTwoSlices; }},
                         });
    }
    check_rows<Convolution>(
        {},
        {
            {"Conv2D DRAM slicing doesn't support override_output_sharding_config.",
             [](Convolution& c) {
                 c.input = placed(kImage);
                 c.config.override_output_sharding_config = true;
             }},
            {"When override_output_sharding_config is set to true, core_grid must have a value.",
             [](Convolution& c) { c.config.override_output_sharding_config = true; }},
            {"Output sharding config override is only supported for BLOCK_SHARDED layout.",
             [](Convolution& c) {
                 c.config = Convolution::of(kHeight);
                 c.config.override_output_sharding_config = true;
                 c.config.core_grid = core_rectangle(2, 4);
             }},
            {"NHW cores must match for input and output when overriding the grid size.",
             [](Convolution& c) {
                 c.config.override_output_sharding_config = true;
                 c.config.core_grid = core_rectangle(2, 3);
             }},
            {"Conv2d supports Height, Block or Width Sharded Layouts but got",
             [](Convolution& c) { c.config.shard_layout = TensorMemoryLayout::INTERLEAVED; }},
            {"Core grid must be provided when overriding sharding config",
             [](Convolution& c) { c.config.override_sharding_config = true; }},
            {"Core grid must be provided when overriding sharding config",
             [](Convolution& c) {
                 c.input = placed(kImage);
                 c.config.override_sharding_config = true;
             }},
            {"If override_sharding_config is set, core_grid must be set as well.",
             [](Convolution& c) {
                 c.input = placed(kImage, sharded(kHeight, 32, kChannels, 8, 1));
                 c.config.override_sharding_config = true;
             }},
            {"If override_sharding_config is set, shard_layout must be set as well.",
             [](Convolution& c) {
                 c.input = placed(kImage, sharded(kHeight, 32, kChannels, 8, 1));
                 c.config = Convolution::of(std::nullopt);
                 c.config.override_sharding_config = true;
                 c.config.core_grid = core_rectangle(4, 1);
             }},
            {"Activation data reuse is not supported for block sharded",
             [](Convolution& c) { c.config.enable_activation_reuse = true; }},
            {"Activation data reuse is not supported for dilation > 1",
             [](Convolution& c) {
                 c.config = Convolution::of(kHeight);
                 c.config.enable_activation_reuse = true;
                 c.dilation = {2, 2};
             }},
            {"Activation data reuse is not supported for stride > 1",
             [](Convolution& c) {
                 c.config = Convolution::of(kHeight);
                 c.config.enable_activation_reuse = true;
                 c.stride = {2, 2};
             }},
        });
}

/// A maximum of windows of 2x2.
struct Pool {
    Tensor input = placed(kImage, sharded(kHeight, 32, kChannels, 8, 1), DataType::BFLOAT16, kRows);
    std::uint32_t channels = kChannels;
    std::optional<TensorMemoryLayout> scheme;

    void operator()() const {
        const std::array<std::uint32_t, 2> two = {2, 2}, none = {0, 0}, one = {1, 1};
        (void)ttnn::max_pool2d(input, 1, kSide, kSide, channels, two, two, none, one, false,
                               std::nullopt, std::nullopt, scheme, false, true, false,
                               DataType::BFLOAT16, kRows, true);
    }
};

void test_pools() {
    const auto rows = [](const Shape& shape, const MemoryConfig& memory = kDRAM) {
        return placed(shape, memory, DataType::BFLOAT16, kRows);
    };
    check_rows<Pool>(
        {}, {
                {"A sharding scheme should not be specified for a sharded input tensor.",
                 [](Pool& p) { p.scheme = kHeight; }},
                {"Only row major orientation is supported.",
                 [&](Pool& p) {
                     p.input = rows(kImage, sharded(kHeight, 32, kChannels, 8, 1, kColumnMajor));
                 }},
                {"Pool2D: For rank-3 input [H, W, C], dimensions must match: input_h=16, "
                 "input_w=16, channels=64, but got shape",
                 [&](Pool& p) { p.input = rows(Shape({kSide, kSide * 2, kChannels / 2})); }},
                {"Pool2D: For rank-2 input [H, W], dimensions must match: input_h=16, input_w=16, "
                 "but got shape",
                 [&](Pool& p) {
                     p.input = rows(Shape({kSide * 2, kSide / 2}));
                     p.channels = 1;
                 }},
                {"Pool2d supports Height, Block or Width Sharded Layouts but got",
                 [&](Pool& p) {
                     p.input = rows(kImage);
                     p.scheme = TensorMemoryLayout::INTERLEAVED;
                 }},
            });
}

}  // namespace

int main() {
    test_convolutions();
    test_pools();
    return 0;
}
