#pragma once

#include <stdexcept>
#include <string>

#include "support/cpu/movement.hpp"

namespace support::cpu {

/// Normalizes an index: negative ones count from the end.
/// @throws std::out_of_range if there is no such position.
inline std::size_t place_of(double index, std::size_t size) {
    const auto found = static_cast<std::int64_t>(index) +
                       (index < 0 ? static_cast<std::int64_t>(size) : std::int64_t{0});
    if (found < 0 || static_cast<std::size_t>(found) >= size) {
        throw std::out_of_range("the index " + std::to_string(static_cast<std::int64_t>(index)) +
                                " names none of " + std::to_string(size) + " places");
    }
    return static_cast<std::size_t>(found);
}

/// The dimension that indices refer to.
struct Along {
    std::size_t dim = 0;
};

/// Takes for each index the element at the index's own coordinates, with the index in place of the
/// coordinate of the dimension.
inline Tensor gather(const Type& type, const Tensor& input, const Tensor& index,
                     const Along& attributes) {
    return from_coordinates(type, [&](Shape coordinates) {
        const double named = element_at(index, coordinates);
        coordinates[attributes.dim] = place_of(named, input.shape[attributes.dim]);
        return element_at(input, coordinates);
    });
}

struct Scattering {
    std::size_t dim = 0;
    /// Combines the old element and the scattered one: "sum", "prod", "min", "max"; any other value
    /// replaces the old one.
    std::string reduce = {};
};

/// Inverse of `gather`: writes elements of `source` to the positions in `index`. Indices out of
/// range are skipped.
inline Tensor scatter(const Type& type, const Tensor& input, const Tensor& index,
                      const Tensor& source, const Scattering& attributes) {
    std::vector<double> values = input.elements;
    const std::array<Shape, 2> strides{strides_of(input.shape), strides_of(source.shape)};
    const std::size_t stride = strides[0][attributes.dim];
    const Shape own = strides_of(index.shape);
    walk<2>(index.shape, strides, [&](std::size_t place, const auto& offsets) {
        const double named = index.elements[place];
        if (named < 0 || named >= static_cast<double>(input.shape[attributes.dim])) {
            return;
        }
        const std::size_t here = place / own[attributes.dim] % index.shape[attributes.dim];
        double& value =
            values[offsets[0] - here * stride + static_cast<std::size_t>(named) * stride];
        const double added = source.elements[offsets[1]];
        if (attributes.reduce == "sum") {
            value = rounded(value + added, type.element);
        } else if (attributes.reduce == "prod") {
            value = rounded(value * added, type.element);
        } else if (attributes.reduce == "min") {
            value = std::min(value, added);
        } else if (attributes.reduce == "max") {
            value = std::max(value, added);
        } else {
            value = added;
        }
    });
    return rounded(type, std::move(values));
}

struct Steps {
    std::vector<std::int64_t> step = {};
};

/// A slice that begins at `begins`; negative positions count from the end.
inline Tensor slice_dynamic(const Type& type, const Tensor& input, const Tensor& begins,
                            const Tensor& /*ends*/, const Steps& attributes) {
    Slice slice{{}, attributes.step};
    for (std::size_t axis = 0; axis < input.shape.size(); ++axis) {
        const std::size_t first = place_of(begins.elements[axis], input.shape[axis]);
        slice.begins.push_back(static_cast<std::int64_t>(first));
        const std::int64_t last =
            slice.begins[axis] +
            (static_cast<std::int64_t>(type.shape[axis]) - 1) * attributes.step[axis];
        place_of(static_cast<double>(last), input.shape[axis]);
    }
    return slice_static(type, input, slice);
}

/// Looks up rows of a table.
inline Tensor embedding(const Type& type, const Tensor& indices, const Tensor& table) {
    const std::size_t columns = table.shape.back();
    std::vector<double> values;
    values.reserve(count_of(type.shape));
    for (const double index : indices.elements) {
        const std::size_t row = place_of(index, table.shape[table.shape.size() - 2]);
        const auto first = table.elements.begin() + static_cast<std::ptrdiff_t>(row * columns);
        values.insert(values.end(), first, first + static_cast<std::ptrdiff_t>(columns));
    }
    return rounded(type, std::move(values));
}

/// The gradient of an embedding table: sums of the rows of `gradient` by index.
inline Tensor embedding_backward(const Type& type, const Tensor& indices, const Tensor& /*table*/,
                                 const Tensor& gradient) {
    const std::size_t columns = gradient.shape.back();
    const std::size_t rows = count_of(type.shape) / columns;
    std::vector<double> values(rows * columns, 0);
    for (std::size_t i = 0; i < indices.elements.size(); ++i) {
        const std::size_t row = place_of(indices.elements[i], rows);
        for (std::size_t column = 0; column < columns; ++column) {
            values[row * columns + column] += gradient.elements[i * columns + column];
        }
    }
    return rounded(type, std::move(values));
}

}  // namespace support::cpu
