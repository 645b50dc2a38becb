#pragma once

#include "support/cpu/tensor.hpp"

namespace support::cpu {

/// Depth, height and width; the depth of images is 1.
using Extent = std::array<std::size_t, 3>;

/// One number for each dimension of an image: two, or three.
using Sizes = std::vector<std::size_t>;

/// `{2, 3}` as the last entries of an extent.
inline Extent extent(const Sizes& sizes, std::size_t filler) {
    Extent result{filler, filler, filler};
    std::ranges::copy_backward(sizes, result.end());
    return result;
}

/// What moves over an image: the distances between its positions and between its taps, and how much
/// is around the image.
struct Window {
    Extent kernel;
    Extent stride;
    Extent dilation;
    Extent before;
    Extent after;
    /// What is around the image has the elements of its edge; else they are zeros, or do not count.
    bool replicate = false;

    /// How far the taps reach.
    std::size_t reach(std::size_t axis) const { return dilation[axis] * (kernel[axis] - 1) + 1; }

    /// How many positions there are along a dimension.
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

    /// The positions of one image.
    std::size_t positions() const { return size[0] * size[1] * size[2]; }
};

/// Which dimension of a tensor is the batch, which lead through the image, and which holds the
/// channels; nothing for this order itself.
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

/// A tensor as an image; `rows` is its shape if the tensor holds it row by row, else it is empty.
inline Image to_image(const Tensor& tensor, const Order& order, const Shape& rows) {
    const auto [shape, strides] = ordered(rows.empty() ? tensor.shape : rows, order);
    Image image{shape.front(), extent({shape.begin() + 1, shape.end() - 1}, 1), shape.back(),
                std::vector<double>(tensor.elements.size())};
    walk<1>(shape, {strides}, [&](std::size_t place, const auto& offsets) {
        image.elements[place] = tensor.elements[offsets[0]];
    });
    return image;
}

/// An image as a tensor, which may hold it row by row.
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

/// A position of a window, and the position of the image that one of its taps sees from there.
struct Seen {
    std::size_t position;
    std::size_t place;
};

/// What a tap sees of a dimension of an image.
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

/// For each tap of a window, and for each position from which it sees the image: calls
/// `visit(position, tap, place)` with their numbers, row by row. Tap by tap, so that what weights
/// have for one stays in the cache.
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
