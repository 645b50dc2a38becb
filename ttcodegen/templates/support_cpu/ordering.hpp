#pragma once

#include <numeric>

#include "support/cpu/tensor.hpp"

namespace support::cpu {

/// A sort along a dimension, of whose result the first `count` elements are kept.
struct Ordering {
    std::size_t dim = 0;
    bool descending = false;
};

/// The order of sorting; NaN is greater than all numbers.
inline bool comes_before(double a, double b, bool descending) {
    if (std::isnan(a) || std::isnan(b)) {
        return descending ? std::isnan(a) && !std::isnan(b) : !std::isnan(a) && std::isnan(b);
    }
    return descending ? a > b : a < b;
}

/// Sorts elements stably and returns them with their indices, as many as the result has along the
/// dimension.
inline std::array<Tensor, 2> sort(const Type& type, const Type& place_type, const Tensor& input,
                                  const Ordering& attributes) {
    const std::size_t size = input.shape[attributes.dim];
    const std::size_t kept = type.shape[attributes.dim];
    const std::size_t stride = strides_of(input.shape)[attributes.dim];
    std::vector<double> values(count_of(type.shape));
    std::vector<double> places(values.size());
    std::vector<std::size_t> order(size);
    const std::size_t rows = values.size() / std::max<std::size_t>(kept, 1);
    for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t block = row / stride;
        const double* const elements = input.elements.data() + block * size * stride + row % stride;
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
            return comes_before(elements[a * stride], elements[b * stride], attributes.descending);
        });
        for (std::size_t i = 0; i < kept; ++i) {
            const std::size_t place = (block * kept + i) * stride + row % stride;
            values[place] = elements[order[i] * stride];
            places[place] = static_cast<double>(order[i]);
        }
    }
    return {rounded(type, std::move(values)), rounded(place_type, std::move(places))};
}

/// The largest or smallest elements in sorted order, with their indices.
inline std::array<Tensor, 2> topk(const Type& type, const Type& place_type, const Tensor& input,
                                  const Ordering& attributes) {
    return sort(type, place_type, input, attributes);
}

}  // namespace support::cpu
