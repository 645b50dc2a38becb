#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "support/array.hpp"

/// Ops in plain C++, for computations that no device program supports.
///
/// Each takes the type of its result, its operands and its attributes. It computes in double
/// precision and rounds each element of the result once, to its type.
namespace support::cpu {

using Shape = std::vector<std::uint64_t>;

/// The element type and shape of a tensor.
struct Type {
    ElementType element = ElementType::float32;
    Shape shape = {};
};

/// A host tensor. Doubles represent every value of the data types of device tensors.
struct Tensor {
    ElementType element = ElementType::float32;
    Shape shape = {};
    /// In row-major order.
    std::vector<double> elements = {};
};

/// An operand that may be absent.
class Optional {
  public:
    Optional(std::nullopt_t /*absent*/) {}
    Optional(const Tensor& tensor) : tensor_(&tensor) {}

    explicit operator bool() const { return tensor_ != nullptr; }
    const Tensor& operator*() const { return *tensor_; }
    const Tensor* operator->() const { return tensor_; }

  private:
    const Tensor* tensor_ = nullptr;
};

inline bool is_integer(ElementType element) { return !is_floating(element); }

/// The minimum and maximum of an integer type of up to 32 bits.
inline std::pair<double, double> limits_of(ElementType element) {
    switch (element) {
        case ElementType::boolean:
            return {0, 1};
        case ElementType::int8:
            return {-0x1p7, 0x1p7 - 1};
        case ElementType::int16:
            return {-0x1p15, 0x1p15 - 1};
        case ElementType::uint8:
            return {0, 0x1p8 - 1};
        case ElementType::uint16:
            return {0, 0x1p16 - 1};
        case ElementType::uint32:
            return {0, 0x1p32 - 1};
        default:
            return {-0x1p31, 0x1p31 - 1};
    }
}

/// The nearest bfloat16, ties to even.
inline double to_bfloat16(double value) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    if (std::isnan(value)) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
}

/// Rounds a value to an element type: floats to nearest, ties to even;
/// conversion to integers truncates fractions, and values out of range
/// saturate.
inline double rounded(double value, ElementType element) {
    if (element == ElementType::bfloat16) {
        return to_bfloat16(value);
    }
    if (!is_integer(element)) {
        return static_cast<float>(value);
    }
    const auto [least, greatest] = limits_of(element);
    return std::isnan(value) ? 0.0 : std::clamp(std::trunc(value), least, greatest);
}

/// The low bits of an integer as an element of that type.
inline double wrapped(std::uint64_t value, ElementType element) {
    switch (element) {
        case ElementType::boolean:
            return value != 0 ? 1 : 0;
        case ElementType::int8:
            return static_cast<std::int8_t>(value);
        case ElementType::int16:
            return static_cast<std::int16_t>(value);
        case ElementType::uint8:
            return static_cast<std::uint8_t>(value);
        case ElementType::uint16:
            return static_cast<std::uint16_t>(value);
        case ElementType::uint32:
            return static_cast<std::uint32_t>(value);
        default:
            return static_cast<std::int32_t>(value);
    }
}

/// The bits of an element that is an integer.
inline std::uint64_t bits_of(double integer) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(integer));
}

/// Rounds values to the element type of a tensor.
inline Tensor rounded(const Type& type, std::vector<double> values) {
    for (double& value : values) {
        value = rounded(value, type.element);
    }
    return {type.element, type.shape, std::move(values)};
}

inline std::size_t count_of(const Shape& shape) { return element_count(shape); }

/// Row-major strides of a shape.
inline Shape strides_of(const Shape& shape) {
    Shape strides(shape.size(), 1);
    for (std::size_t axis = shape.size(); axis-- > 1;) {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    return strides;
}

/// Strides of a tensor that is broadcast to a shape: 0 along dimensions that it lacks or in which
/// its size is one.
inline Shape broadcast_strides(const Shape& shape, const Shape& to) {
    const Shape own = strides_of(shape);
    Shape strides(to.size(), 0);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        const std::size_t place = to.size() - shape.size() + axis;
        strides[place] = shape[axis] == to[place] ? own[axis] : 0;
    }
    return strides;
}

/// Iterates over a shape in row-major order. Calls `visit(place, offsets)` with the linear index
/// and, for each set of strides, the offset of the position.
template <std::size_t Count, typename Visit>
void walk(const Shape& shape, const std::array<Shape, Count>& strides, Visit visit) {
    const std::size_t total = count_of(shape);
    Shape coordinates(shape.size(), 0);
    std::array<std::size_t, Count> offsets{};
    for (std::size_t place = 0; place < total; ++place) {
        visit(place, offsets);
        for (std::size_t axis = shape.size(); axis-- > 0;) {
            const bool carries = ++coordinates[axis] == shape[axis];
            const std::size_t back = carries ? shape[axis] - 1 : 0;
            for (std::size_t i = 0; i < Count; ++i) {
                offsets[i] += carries ? -back * strides[i][axis] : strides[i][axis];
            }
            if (!carries) {
                break;
            }
            coordinates[axis] = 0;
        }
    }
}

}  // namespace support::cpu
