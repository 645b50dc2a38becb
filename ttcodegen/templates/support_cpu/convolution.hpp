#pragma once

#include "support/cpu/window.hpp"

namespace support::cpu {

/// Parameters for each dimension of the image; the padding is before and after it.
struct Convolution {
    Sizes stride = {};
    Sizes before = {};
    Sizes after = {};
    Sizes dilation = {};
    /// Elements that a transposed convolution appends to each dimension of its result.
    Sizes output_padding = {};
    std::size_t groups = 1;
    Order order = {};
    /// The shape of the image where the tensor has it flattened to rows.
    Shape rows = {};
    bool replicate = false;

    Window window(const Shape& weight) const {
        return {extent({weight.begin() + 2, weight.end()}, 1),
                extent(stride, 1),
                extent(dilation, 1),
                extent(before, 0),
                extent(after, 0),
                replicate};
    }
};

/// A weight (a, b, kernel...) as (kernel..., a, b): the factors of a tap are contiguous.
inline std::vector<double> tap_by_tap(const Tensor& weight) {
    const std::size_t rows = weight.shape[0] * weight.shape[1];
    const std::size_t taps = weight.elements.size() / std::max<std::size_t>(rows, 1);
    std::vector<double> result(weight.elements.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
        result[i % taps * rows + i / taps] = weight.elements[i];
    }
    return result;
}

/// An image that is initialised with the bias of each channel.
inline Image image_of(std::size_t batch, const Extent& size, std::size_t channels,
                      const Optional& bias) {
    Image image{batch, size, channels, {}};
    image.elements.resize(batch * image.positions() * channels);
    for (std::size_t i = 0; bias && i < image.elements.size(); ++i) {
        image.elements[i] = bias->elements[i % channels];
    }
    return image;
}

/// Cross-correlation of images and a weight (output channels, input channels of each group,
/// kernel...).
inline Tensor convolution(const Type& type, const Tensor& input, const Tensor& weight,
                          const Optional& bias, const Convolution& attributes) {
    const Image image = to_image(input, attributes.order, attributes.rows);
    const Window window = attributes.window(weight.shape);
    Extent size{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
        size[axis] = window.outputs(axis, image.size[axis]);
    }
    Image result = image_of(image.batch, size, weight.shape[0], bias);
    const std::size_t width = weight.shape[1];
    const std::size_t outputs = result.channels / attributes.groups;
    const std::vector<double> factors = tap_by_tap(weight);
    // (tap, group, input channel, output channel): the inner loop runs over contiguous sums.
    std::vector<double> ordered_factors(factors.size());
    for (std::size_t i = 0; i < factors.size(); ++i) {
        const std::size_t channel = i / width % outputs;
        const std::size_t group = i / width / outputs;
        ordered_factors[(group * width + i % width) * outputs + channel] = factors[i];
    }
    for (std::size_t n = 0; n < image.batch; ++n) {
        const double* const seen = image.elements.data() + n * image.positions() * image.channels;
        double* const sums = result.elements.data() + n * result.positions() * result.channels;
        for_each_tap(window, image.size, size,
                     [&](std::size_t position, std::size_t tap, std::size_t place) {
                         for (std::size_t channel = 0; channel < image.channels; ++channel) {
                             const double x = seen[place * image.channels + channel];
                             const double* const row = ordered_factors.data() +
                                                       (tap * image.channels + channel) * outputs;
                             double* const sum =
                                 sums + position * result.channels + channel / width * outputs;
                             for (std::size_t output = 0; output < outputs; ++output) {
                                 sum[output] += x * row[output];
                             }
                         }
                     });
    }
    return from_image(type, result, attributes.order);
}

/// Transposed convolution with a weight (input channels, output channels of each group, kernel...):
/// every element adds its multiple of the kernel to the result.
inline Tensor transposed_convolution(const Type& type, const Tensor& input, const Tensor& weight,
                                     const Optional& bias, const Convolution& attributes) {
    const Image image = to_image(input, attributes.order, attributes.rows);
    const Window window = attributes.window(weight.shape);
    const Extent extra = extent(attributes.output_padding, 0);
    Extent size{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
        size[axis] = (image.size[axis] - 1) * window.stride[axis] + window.reach(axis) +
                     extra[axis] - window.before[axis] - window.after[axis];
    }
    const std::size_t outputs = weight.shape[1];
    Image result = image_of(image.batch, size, outputs * attributes.groups, bias);
    const std::size_t width = image.channels / attributes.groups;
    const std::vector<double> factors = tap_by_tap(weight);
    for (std::size_t n = 0; n < image.batch; ++n) {
        const double* const given = image.elements.data() + n * image.positions() * image.channels;
        double* const sums = result.elements.data() + n * result.positions() * result.channels;
        // The windows of the result are at the positions of the input image.
        for_each_tap(window, size, image.size,
                     [&](std::size_t position, std::size_t tap, std::size_t place) {
                         for (std::size_t channel = 0; channel < image.channels; ++channel) {
                             const double x = given[position * image.channels + channel];
                             const double* const row =
                                 factors.data() + (tap * image.channels + channel) * outputs;
                             double* const sum =
                                 sums + place * result.channels + channel / width * outputs;
                             for (std::size_t output = 0; output < outputs; ++output) {
                                 sum[output] += x * row[output];
                             }
                         }
                     });
    }
    return from_image(type, result, attributes.order);
}

}  // namespace support::cpu
