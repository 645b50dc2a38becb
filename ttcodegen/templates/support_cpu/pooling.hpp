#pragma once

#include "support/cpu/window.hpp"

namespace support::cpu {

/// Parameters for height and width; the padding is before and after the image.
struct Pooling {
    Sizes kernel = {};
    Sizes stride = {};
    Sizes before = {};
    Sizes after = {};
    Sizes dilation = {};
    /// Numbers of windows in each dimension.
    Sizes outputs = {};
    /// The shape of the image where the tensor has it flattened to rows.
    Shape rows = {};
    /// Counts the padding in means. Elements past the padding are never counted.
    bool count_padding = false;

    Window window() const {
        return {extent(kernel, 1), extent(stride, 1), extent(dilation, 1), extent(before, 0),
                extent(after, 0)};
    }
};

/// Calls `visit(element of the result, element of the image, index of the element in the image)`
/// for all elements of all windows of each image.
template <typename Visit>
void pool(const Image& image, const Pooling& attributes, Visit visit) {
    const Extent outputs = extent(attributes.outputs, 1);
    const std::size_t positions = outputs[0] * outputs[1] * outputs[2];
    for (std::size_t n = 0; n < image.batch; ++n) {
        for_each_tap(attributes.window(), image.size, outputs,
                     [&](std::size_t position, std::size_t /*tap*/, std::size_t place) {
                         const std::size_t to = (n * positions + position) * image.channels;
                         const std::size_t from = (n * image.positions() + place) * image.channels;
                         for (std::size_t channel = 0; channel < image.channels; ++channel) {
                             visit(to + channel, image.elements[from + channel], place);
                         }
                     });
    }
}

/// Maxima of the windows of images (batch, height, width, channels), NaN if a window has one, and
/// the indices of their first occurrence: row times width plus column.
inline std::array<Tensor, 2> max_pool2d_with_indices(const Type& type, const Type& place_type,
                                                     const Tensor& input,
                                                     const Pooling& attributes) {
    const Image image = to_image(input, {}, attributes.rows);
    const std::size_t count = count_of(type.shape);
    std::vector<double> values(count, -std::numeric_limits<double>::infinity());
    std::vector<double> places(count, 0);
    std::vector<bool> found(count, false);
    pool(image, attributes, [&](std::size_t result, double x, std::size_t place) {
        if (!found[result] || x > values[result]) {
            found[result] = true;
            values[result] = x;
            places[result] = static_cast<double>(place);
        }
    });
    return {rounded(type, std::move(values)), rounded(place_type, std::move(places))};
}

/// The maximum of each window, NaN if it has one.
inline Tensor max_pool2d(const Type& type, const Tensor& input, const Pooling& attributes) {
    const Image image = to_image(input, {}, attributes.rows);
    std::vector<double> values(count_of(type.shape), -std::numeric_limits<double>::infinity());
    pool(image, attributes, [&](std::size_t result, double x, std::size_t /*place*/) {
        values[result] = x > values[result] || std::isnan(x) ? x : values[result];
    });
    return rounded(type, std::move(values));
}

/// The number of elements of a window that lie in a padded dimension.
inline std::size_t counted(const Window& window, std::size_t axis, std::size_t position,
                           std::size_t size) {
    std::size_t count = 0;
    for (std::size_t tap = 0; tap < window.kernel[axis]; ++tap) {
        const std::size_t padded = position * window.stride[axis] + tap * window.dilation[axis];
        count += padded < size + window.before[axis] + window.after[axis] ? 1 : 0;
    }
    return count;
}

/// The mean of each window; 0 if it is empty.
inline Tensor avg_pool2d(const Type& type, const Tensor& input, const Pooling& attributes) {
    const Image image = to_image(input, {}, attributes.rows);
    const std::size_t count = count_of(type.shape);
    std::vector<double> values(count, 0);
    std::vector<std::size_t> seen(count, 0);
    pool(image, attributes, [&](std::size_t result, double x, std::size_t /*place*/) {
        values[result] += x;
        ++seen[result];
    });
    const Window window = attributes.window();
    const Extent outputs = extent(attributes.outputs, 1);
    for (std::size_t i = 0; i < count; ++i) {
        std::size_t total = seen[i];
        if (attributes.count_padding) {
            const std::size_t position = i / image.channels % (outputs[1] * outputs[2]);
            total = counted(window, 1, position / outputs[2], image.size[1]) *
                    counted(window, 2, position % outputs[2], image.size[2]);
        }
        values[i] /= static_cast<double>(std::max<std::size_t>(total, 1));
    }
    return rounded(type, std::move(values));
}

struct Upsampling {
    /// Scale factors of height and width.
    Sizes factors = {};
    bool bilinear = false;
};

/// A position between two pixels: both neighbours, and the weight of the second one.
struct Between {
    std::size_t below;
    std::size_t above;
    double share;
};

/// The source position of an upscaled pixel's centre, clamped to the outer centres.
inline Between between(std::size_t place, std::size_t factor, std::size_t size, bool bilinear) {
    if (!bilinear) {
        return {place / factor, place / factor, 0};
    }
    const double middle = (static_cast<double>(place) + 0.5) / static_cast<double>(factor) - 0.5;
    const double position = std::clamp(middle, 0.0, static_cast<double>(size - 1));
    const auto below = static_cast<std::size_t>(position);
    return {below, std::min(below + 1, size - 1), position - std::floor(position)};
}

inline double mixed(double below, double above, double share) {
    return share == 0 ? below : below * (1 - share) + above * share;
}

/// Upsampled images (batch, height, width, channels), by nearest neighbour or bilinear
/// interpolation.
inline Tensor upsample2d(const Type& type, const Tensor& input, const Upsampling& attributes) {
    const std::size_t channels = type.shape[3];
    const std::size_t width = input.shape[2];
    std::vector<double> values;
    values.reserve(count_of(type.shape));
    for (std::size_t n = 0; n < type.shape[0]; ++n) {
        for (std::size_t row = 0; row < type.shape[1]; ++row) {
            const Between y =
                between(row, attributes.factors[0], input.shape[1], attributes.bilinear);
            for (std::size_t column = 0; column < type.shape[2]; ++column) {
                const Between x =
                    between(column, attributes.factors[1], width, attributes.bilinear);
                const auto at = [&](std::size_t line, std::size_t place, std::size_t channel) {
                    const std::size_t above = n * input.shape[1] + line;
                    return input.elements[(above * width + place) * channels + channel];
                };
                for (std::size_t c = 0; c < channels; ++c) {
                    const double first =
                        mixed(at(y.below, x.below, c), at(y.above, x.below, c), y.share);
                    const double second =
                        mixed(at(y.below, x.above, c), at(y.above, x.above, c), y.share);
                    values.push_back(mixed(first, second, x.share));
                }
            }
        }
    }
    return rounded(type, std::move(values));
}

}  // namespace support::cpu
