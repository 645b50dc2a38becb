#pragma once

#include <span>

#include "support/cpu/tensor.hpp"

namespace support::cpu {

/// The reduced dimensions, counted from 0, in ascending order.
struct Reduction {
    std::vector<std::size_t> dims = {};
};

/// Strides of each dimension of a shape in the reduced result; 0 for reduced ones.
inline Shape kept_strides(const Shape& shape, std::span<const std::size_t> dims) {
    Shape strides(shape.size(), 0);
    std::size_t stride = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
        if (std::ranges::find(dims, axis) == dims.end()) {
            strides[axis] = stride;
            stride *= shape[axis];
        }
    }
    return strides;
}

/// Folds the elements of each result with `add`, starting with `start`.
template <typename Value, typename Add, typename Read>
std::vector<Value> reduced(const Type& type, const Tensor& input, const Reduction& attributes,
                           Value start, Add add, Read read) {
    std::vector<Value> values(count_of(type.shape), start);
    const std::array<Shape, 1> strides{kept_strides(input.shape, attributes.dims)};
    walk<1>(input.shape, strides, [&](std::size_t place, const auto& offsets) {
        Value& value = values[offsets[0]];
        value = add(value, read(input.elements[place]));
    });
    return values;
}

/// As `reduced`, with integer arithmetic modulo a power of two.
template <typename Add>
Tensor accumulated(const Type& type, const Tensor& input, const Reduction& attributes, int start,
                   Add add) {
    if (!is_integer(type.element) || !is_integer(input.element)) {
        const auto as_it_is = [](double x) { return x; };
        return rounded(type, reduced<double>(type, input, attributes, start, add, as_it_is));
    }
    const auto first = static_cast<std::uint64_t>(start);
    const auto sums = reduced<std::uint64_t>(type, input, attributes, first, add, bits_of);
    std::vector<double> values(sums.size());
    std::ranges::transform(sums, values.begin(),
                           [&](std::uint64_t sum) { return wrapped(sum, type.element); });
    return rounded(type, std::move(values));
}

inline Tensor sum(const Type& type, const Tensor& input, const Reduction& attributes) {
    return accumulated(type, input, attributes, 0, [](auto a, auto b) { return a + b; });
}

inline Tensor prod(const Type& type, const Tensor& input, const Reduction& attributes) {
    return accumulated(type, input, attributes, 1, [](auto a, auto b) { return a * b; });
}

inline Tensor mean(const Type& type, const Tensor& input, const Reduction& attributes) {
    std::vector<double> values = reduced<double>(
        type, input, attributes, 0, [](double a, double b) { return a + b; },
        [](double x) { return x; });
    double count = 1;
    for (const std::size_t axis : attributes.dims) {
        count *= static_cast<double>(input.shape[axis]);
    }
    for (double& value : values) {
        value /= count;
    }
    return rounded(type, std::move(values));
}

/// The extreme element in the order of `before`; NaN if there is one.
template <typename Before>
Tensor extreme(const Type& type, const Tensor& input, const Reduction& attributes, double start,
               Before before) {
    const auto choose = [&](double a, double b) { return std::isnan(b) || before(b, a) ? b : a; };
    return rounded(
        type, reduced<double>(type, input, attributes, start, choose, [](double x) { return x; }));
}

inline Tensor max(const Type& type, const Tensor& input, const Reduction& attributes) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return extreme(type, input, attributes, -infinity, [](double a, double b) { return a > b; });
}

inline Tensor min(const Type& type, const Tensor& input, const Reduction& attributes) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return extreme(type, input, attributes, infinity, [](double a, double b) { return a < b; });
}

/// The index of the first maximum, NaN being greater than all numbers; over several dimensions, in
/// row-major order of these.
inline Tensor argmax(const Type& type, const Tensor& input, const Reduction& attributes) {
    const std::size_t count = count_of(type.shape);
    std::vector<double> best(count);
    std::vector<double> places(count, 0);
    std::vector<std::size_t> seen(count, 0);
    const std::array<Shape, 1> strides{kept_strides(input.shape, attributes.dims)};
    walk<1>(input.shape, strides, [&](std::size_t place, const auto& offsets) {
        const std::size_t result = offsets[0];
        const double element = input.elements[place];
        const std::size_t index = seen[result]++;
        const bool is_first_nan = std::isnan(element) && !std::isnan(best[result]);
        if (index == 0 || element > best[result] || is_first_nan) {
            best[result] = element;
            places[result] = static_cast<double>(index);
        }
    });
    return rounded(type, std::move(places));
}

/// The dimension of a scan.
struct Scan {
    std::size_t dim = 0;
};

/// Inclusive scan with `add` along a dimension.
template <typename Value, typename Add, typename Read>
std::vector<Value> scanned(const Tensor& input, const Scan& attributes, Value start, Add add,
                           Read read) {
    const std::size_t size = input.shape[attributes.dim];
    const std::size_t stride = strides_of(input.shape)[attributes.dim];
    std::vector<Value> values(input.elements.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        const bool is_first = i / stride % size == 0;
        values[i] = add(is_first ? start : values[i - stride], read(input.elements[i]));
    }
    return values;
}

template <typename Add>
Tensor scan(const Type& type, const Tensor& input, const Scan& attributes, int start, Add add) {
    if (!is_integer(type.element) || !is_integer(input.element)) {
        const auto as_it_is = [](double x) { return x; };
        return rounded(type, scanned<double>(input, attributes, start, add, as_it_is));
    }
    const auto first = static_cast<std::uint64_t>(start);
    const auto sums = scanned<std::uint64_t>(input, attributes, first, add, bits_of);
    std::vector<double> values(sums.size());
    std::ranges::transform(sums, values.begin(),
                           [&](std::uint64_t sum) { return wrapped(sum, type.element); });
    return rounded(type, std::move(values));
}

inline Tensor cumsum(const Type& type, const Tensor& input, const Scan& attributes) {
    return scan(type, input, attributes, 0, [](auto a, auto b) { return a + b; });
}

inline Tensor cumprod(const Type& type, const Tensor& input, const Scan& attributes) {
    return scan(type, input, attributes, 1, [](auto a, auto b) { return a * b; });
}

}  // namespace support::cpu
