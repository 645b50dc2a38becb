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

/// Ops in plain C++, for what no program of the device computes.
///
/// Each takes the type of its result, its operands and its attributes. It computes with doubles and
/// rounds each element of the result once, to what its type can hold.
namespace support::cpu {

using Shape = std::vector<std::uint64_t>;

/// What a tensor is, without its elements.
struct Type {
    ElementType element = ElementType::float32;
    Shape shape = {};
};

/// A tensor of the host. Doubles hold every value of the types that tensors of the device have.
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

/// The smallest and the largest value of an integer type of up to 32 bits.
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

/// A value as an element of that type holds it: floats are rounded to nearest, ties to even; on the
/// way to an integer fractions are cut off, and what is out of range becomes the nearest that is
/// not.
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

/// The lower bits of an integer as an element of that type.
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

/// An element that is an integer, with the bits that it has.
inline std::uint64_t bits_of(double integer) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(integer));
}

/// The tensor of that type that is nearest to some values.
inline Tensor rounded(const Type& type, std::vector<double> values) {
    for (double& value : values) {
        value = rounded(value, type.element);
    }
    return {type.element, type.shape, std::move(values)};
}

inline std::size_t count_of(const Shape& shape) { return element_count(shape); }

/// How far apart neighbours along each dimension of a row-major tensor are.
inline Shape strides_of(const Shape& shape) {
    Shape strides(shape.size(), 1);
    for (std::size_t axis = shape.size(); axis-- > 1;) {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    return strides;
}

/// How far to move in a tensor for a step along each dimension of what it is broadcast to: not at
/// all along dimensions that it lacks or has one element of.
inline Shape broadcast_strides(const Shape& shape, const Shape& to) {
    const Shape own = strides_of(shape);
    Shape strides(to.size(), 0);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        const std::size_t place = to.size() - shape.size() + axis;
        strides[place] = shape[axis] == to[place] ? own[axis] : 0;
    }
    return strides;
}

/// Goes through a shape in row-major order. Calls `visit(place, offsets)` with the number of the
/// place, and for each row of strides with how far it leads from the beginning.
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
