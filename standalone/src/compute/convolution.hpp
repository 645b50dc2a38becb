#pragma once

// Convolutions of channels-last pixels in up to three dimensions, as matmuls whose left operand is
// gathered on the fly.

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
    /// Padding before the first input; negative padding crops.
    std::int64_t padding = 0;
    /// Distance between inputs, with zeros between them: the stride of a transposed
    /// convolution.
    std::int64_t input_dilation = 1;
};

struct Convolution {
    std::int64_t batch = 1;
    /// Depth, height, width.
    std::array<ConvolutionAxis, 3> axes;
    std::int64_t in_channels = 1;
    std::int64_t out_channels = 1;
    std::int64_t groups = 1;
    /// Pads with the edge of the input instead of zeros.
    bool replicate = false;
    /// Channels of a pixel in memory, more than `in_channels` if it is padded.
    std::int64_t pixel_channels = in_channels;

    std::int64_t taps() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
    std::int64_t pixels() const { return batch * axes[0].output * axes[1].output * axes[2].output; }
    std::int64_t group_in() const { return in_channels / groups; }
    std::int64_t group_out() const { return out_channels / groups; }
    bool is_depthwise() const { return groups > 1 && group_in() == 1 && group_out() == 1; }
};

/// Strides of a convolution's weights in memory, in elements.
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

/// Convolves and stores the sums through `output`, whose rows are pixels. Pixels are the first
/// operand of matmuls, weights the second one.
///
/// Weights are rounded to `weights_dtype` and cached in packed form with their tensor.
void convolve(const Tensor& input, const Tensor& weights, const WeightStrides& strides,
              DataType weights_dtype, const Convolution& convolution, const Arithmetic& arithmetic,
              const ProductOutput& output);

}  // namespace ttcodegen::cpu
