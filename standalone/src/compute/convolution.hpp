#pragma once

// Convolutions of channels-last pixels in up to three dimensions, as matrix products whose left
// operand is gathered on the fly.

#include <array>
#include <cstdint>
#include <limits>

#include "compute/product.hpp"

namespace ttcodegen::cpu {

/// One spatial dimension of a convolution.
struct ConvolutionAxis {
    std::int64_t input = 1;
    std::int64_t output = 1;
    std::int64_t kernel = 1;
    std::int64_t stride = 1;
    std::int64_t dilation = 1;
    /// Positions before the first input; negative ones are cut off.
    std::int64_t padding = 0;
    /// Distance between inputs, with zeros between them: a transposed convolution's
    /// stride.
    std::int64_t input_dilation = 1;
};

struct Convolution {
    std::int64_t batch = 1;
    /// Depth, height, width.
    std::array<ConvolutionAxis, 3> axes;
    std::int64_t in_channels = 1;
    std::int64_t out_channels = 1;
    std::int64_t groups = 1;
    /// Whether the edge is repeated outside of the input, instead of zeros.
    bool replicate = false;
    /// Channels that a pixel has in memory, more than `in_channels` where it is padded.
    std::int64_t pixel_channels = in_channels;

    std::int64_t taps() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
    std::int64_t pixels() const { return batch * axes[0].output * axes[1].output * axes[2].output; }
    std::int64_t group_in() const { return in_channels / groups; }
    std::int64_t group_out() const { return out_channels / groups; }
    bool is_depthwise() const { return groups > 1 && group_in() == 1 && group_out() == 1; }
};

/// The layout of the weights of a convolution in memory, in elements.
struct WeightStrides {
    std::int64_t group = 0;
    std::int64_t out_channel = 0;
    std::int64_t in_channel = 0;
    /// Negative for mirrored kernels; `first_tap` is the offset of tap 0.
    std::int64_t tap = 1;
    std::int64_t first_tap = 0;
    /// Channels in one block, and the distance between blocks.
    std::int64_t channel_block = std::numeric_limits<std::int64_t>::max();
    std::int64_t block = 0;
};

/// Convolves and hands the sums to `output`, whose rows are pixels. Pixels are first operands of
/// products, weights second ones.
///
/// Weights are rounded to `weights_dtype` and kept in packed form with their tensor.
void convolve(const Tensor& input, const Tensor& weights, const WeightStrides& strides,
              DataType weights_dtype, const Convolution& convolution, const Arithmetic& arithmetic,
              const ProductOutput& output);

}  // namespace ttcodegen::cpu
