#pragma once

#include <span>

#include "support/cpu/tensor.hpp"

namespace support::cpu {

struct Fill {
    double value = 0;
};

inline Tensor full(const Type& type, const Fill& attributes) {
    return rounded(type, std::vector<double>(count_of(type.shape), attributes.value));
}

/// A tensor whose elements are computed from their coordinates by `element`.
template <typename Element>
Tensor from_coordinates(const Type& type, Element element) {
    std::vector<double> values;
    values.reserve(count_of(type.shape));
    Shape coordinates(type.shape.size(), 0);
    walk<0>(type.shape, {}, [&](std::size_t place, const auto& /*offsets*/) {
        for (std::size_t axis = coordinates.size(); axis-- > 0;) {
            coordinates[axis] = place % type.shape[axis];
            place /= type.shape[axis];
        }
        values.push_back(element(std::as_const(coordinates)));
    });
    return rounded(type, std::move(values));
}

/// The element at these coordinates.
inline double element_at(const Tensor& tensor, std::span<const std::uint64_t> coordinates) {
    std::size_t place = 0;
    for (std::size_t axis = 0; axis < coordinates.size(); ++axis) {
        place = place * tensor.shape[axis] + coordinates[axis];
    }
    return tensor.elements[place];
}

inline Tensor reshape(const Type& type, const Tensor& input) {
    return rounded(type, input.elements);
}

inline Tensor broadcast(const Type& type, const Tensor& input) {
    std::vector<double> values(count_of(type.shape));
    const std::array<Shape, 1> strides{broadcast_strides(input.shape, type.shape)};
    walk<1>(type.shape, strides, [&](std::size_t place, const auto& offsets) {
        values[place] = input.elements[offsets[0]];
    });
    return rounded(type, std::move(values));
}

struct Permutation {
    /// For each dimension of the result, the dimension of the operand.
    std::vector<std::size_t> permutation = {};
};

inline Tensor permute(const Type& type, const Tensor& input, const Permutation& attributes) {
    Shape place(input.shape.size());
    return from_coordinates(type, [&](const Shape& coordinates) {
        for (std::size_t axis = 0; axis < place.size(); ++axis) {
            place[attributes.permutation[axis]] = coordinates[axis];
        }
        return element_at(input, place);
    });
}

/// Begin and step of each dimension; a negative step reads backwards.
struct Slice {
    std::vector<std::int64_t> begins = {};
    std::vector<std::int64_t> step = {};
};

inline Tensor slice_static(const Type& type, const Tensor& input, const Slice& attributes) {
    Shape place(input.shape.size());
    return from_coordinates(type, [&](const Shape& coordinates) {
        for (std::size_t axis = 0; axis < place.size(); ++axis) {
            const auto moved = static_cast<std::int64_t>(coordinates[axis]) * attributes.step[axis];
            place[axis] = static_cast<std::uint64_t>(attributes.begins[axis] + moved);
        }
        return element_at(input, place);
    });
}

struct Reversal {
    std::vector<std::size_t> dimensions = {};
};

inline Tensor reverse(const Type& type, const Tensor& input, const Reversal& attributes) {
    return from_coordinates(type, [&](Shape coordinates) {
        for (const std::size_t axis : attributes.dimensions) {
            coordinates[axis] = input.shape[axis] - 1 - coordinates[axis];
        }
        return element_at(input, coordinates);
    });
}

/// Tiles a tensor along its dimensions.
inline Tensor repeat(const Type& type, const Tensor& input) {
    const std::size_t added = type.shape.size() - input.shape.size();
    Shape place(input.shape.size());
    return from_coordinates(type, [&](const Shape& coordinates) {
        for (std::size_t axis = 0; axis < place.size(); ++axis) {
            place[axis] = coordinates[added + axis] % input.shape[axis];
        }
        return element_at(input, place);
    });
}

struct Interleaving {
    std::size_t repeats = 1;
    std::size_t dim = 0;
};

/// Repeats each index of a dimension consecutively.
inline Tensor repeat_interleave(const Type& type, const Tensor& input,
                                const Interleaving& attributes) {
    return from_coordinates(type, [&](Shape coordinates) {
        coordinates[attributes.dim] /= attributes.repeats;
        return element_at(input, coordinates);
    });
}

struct Padding {
    /// Elements of padding before each dimension; negative values crop.
    std::vector<std::int64_t> before = {};
    double value = 0;
};

inline Tensor pad(const Type& type, const Tensor& input, const Padding& attributes) {
    Shape place(input.shape.size());
    return from_coordinates(type, [&](const Shape& coordinates) {
        for (std::size_t axis = 0; axis < place.size(); ++axis) {
            // Before the first element, the unsigned coordinate wraps around: out of range too.
            place[axis] = coordinates[axis] - static_cast<std::uint64_t>(attributes.before[axis]);
            if (place[axis] >= input.shape[axis]) {
                return attributes.value;
            }
        }
        return element_at(input, place);
    });
}

struct Concatenation {
    std::size_t dim = 0;
};

inline Tensor concat(const Type& type, const std::vector<Tensor>& inputs,
                     const Concatenation& attributes) {
    return from_coordinates(type, [&](Shape coordinates) {
        std::size_t index = 0;
        std::uint64_t& place = coordinates[attributes.dim];
        while (place >= inputs[index].shape[attributes.dim]) {
            place -= inputs[index].shape[attributes.dim];
            ++index;
        }
        return element_at(inputs[index], coordinates);
    });
}

}  // namespace support::cpu
