#pragma once

#include "support/cpu/tensor.hpp"

namespace support::cpu {

/// Depth, height and width; the depth of images is 1.
using Extent = std::array<std::size_t, 3>;

/// One number for each dimension of an image: two or three.
using Sizes = std::vector<std::size_t>;

/// Extends sizes to three dimensions with `filler` in front.
inline Extent extent(const Sizes& sizes, std::size_t filler) {
    Extent result{filler, filler, filler};
    std::ranges::copy_backward(sizes, result.end());
    return result;
}

/// A sliding window: kernel size, stride, dilation and the padding before and after the
/// image.
struct Window {
    Extent kernel;
    Extent stride;
    Extent dilation;
    Extent before;
    Extent after;
    /// Pads with the elements of the edge; else padding is zero, or is ignored.
    bool replicate = false;

    /// The extent of a dilated kernel along an axis.
    std::size_t reach(std::size_t axis) const { return dilation[axis] * (kernel[axis] - 1) + 1; }

    /// The number of windows along an axis.
    std::size_t outputs(std::size_t axis, std::size_t size) const {
        return (size + before[axis] + after[axis] - reach(axis)) / stride[axis] + 1;
    }
};

/// An image with its dimensions in order: batch, depth, height, width, channels.
struct Image {
    std::size_t batch = 1;
    Extent size{1, 1, 1};
    std::size_t channels = 1;
    std::vector<double> elements;

    /// The number of positions of an image.
    std::size_t positions() const { return size[0] * size[1] * size[2]; }
};

/// The order of a tensor's dimensions: batch, spatial dimensions, channels. Empty for the
/// identity.
using Order = std::vector<std::size_t>;

/// Shape and strides of a tensor in the order of an image.
inline std::pair<Shape, Shape> ordered(const Shape& shape, const Order& order) {
    const Shape strides = strides_of(shape);
    std::pair<Shape, Shape> result{shape, strides};
    for (std::size_t axis = 0; axis < order.size(); ++axis) {
        result.first[axis] = shape[order[axis]];
        result.second[axis] = strides[order[axis]];
    }
    return result;
}

/// A tensor as an image; `rows` is its shape if the tensor is flattened to rows, else empty.
inline Image to_image(const Tensor& tensor, const Order& order, const Shape& rows) {
    const auto [shape, strides] = ordered(rows.empty() ? tensor.shape : rows, order);
    Image image{shape.front(), extent({shape.begin() + 1, shape.end() - 1}, 1), shape.back(),
                std::vector<double>(tensor.elements.size())};
    walk<1>(shape, {strides}, [&](std::size_t place, const auto& offsets) {
        image.elements[place] = tensor.elements[offsets[0]];
    });
    return image;
}

/// An image as a tensor, which may be flattened to rows.
inline Tensor from_image(const Type& type, const Image& image, const Order& order) {
    if (order.empty()) {
        return rounded(type, image.elements);
    }
    const auto [shape, strides] = ordered(type.shape, order);
    std::vector<double> values(image.elements.size());
    walk<1>(shape, {strides}, [&](std::size_t place, const auto& offsets) {
        values[offsets[0]] = image.elements[place];
    });
    return rounded(type, std::move(values));
}

/// A window's position, and the position in the image that one of its taps reads.
struct Seen {
    std::size_t position;
    std::size_t place;
};

/// The positions of the image that a tap reads along an axis.
inline std::vector<Seen> seen_by(const Window& window, std::size_t axis, std::size_t tap,
                                 std::size_t positions, std::size_t size) {
    std::vector<Seen> result;
    for (std::size_t position = 0; position < positions; ++position) {
        const std::size_t padded = position * window.stride[axis] + tap * window.dilation[axis];
        const std::size_t before = window.before[axis];
        const std::size_t place = std::max(padded, before) - before;
        if (window.replicate) {
            result.push_back({position, std::min(place, size - 1)});
        } else if (padded >= before && place < size) {
            result.push_back({position, place});
        }
    }
    return result;
}

/// Calls `visit(position, tap, place)`, with row-major indices, for each tap of a window and each
/// position at which it is within the image. Taps are the outer loop, so that the weights of one
/// stay in the cache.
template <typename Visit>
void for_each_tap(const Window& window, const Extent& image, const Extent& outputs, Visit visit) {
    std::array<std::vector<std::vector<Seen>>, 3> seen;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        for (std::size_t tap = 0; tap < window.kernel[axis]; ++tap) {
            seen[axis].push_back(seen_by(window, axis, tap, outputs[axis], image[axis]));
        }
    }
    std::size_t tap = 0;
    for (const auto& depths : seen[0]) {
        for (const auto& rows : seen[1]) {
            for (const auto& columns : seen[2]) {
                for (const Seen& depth : depths) {
                    for (const Seen& row : rows) {
                        const std::size_t line = depth.position * outputs[1] + row.position;
                        const std::size_t above = depth.place * image[1] + row.place;
                        for (const Seen& column : columns) {
                            visit(line * outputs[2] + column.position, tap,
                                  above * image[2] + column.place);
                        }
                    }
                }
                ++tap;
            }
        }
    }
}

}  // namespace support::cpu
