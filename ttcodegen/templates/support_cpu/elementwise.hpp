#pragma once

#include <numbers>

#include "support/cpu/tensor.hpp"

namespace support::cpu {

/// Applies `function` to the elements of some operands, which are broadcast.
template <typename Function, typename... Tensors>
Tensor map(const Type& type, Function function, const Tensors&... operands) {
    std::vector<double> values(count_of(type.shape));
    if (((operands.shape == type.shape) && ...)) {
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = function(operands.elements[i]...);
        }
    } else {
        constexpr std::size_t count = sizeof...(Tensors);
        const std::array<const double*, count> elements{operands.elements.data()...};
        const std::array<Shape, count> strides{broadcast_strides(operands.shape, type.shape)...};
        walk<count>(type.shape, strides, [&](std::size_t place, const auto& offsets) {
            [&]<std::size_t... Index>(std::index_sequence<Index...>) {
                values[place] = function(elements[Index][offsets[Index]]...);
            }(std::make_index_sequence<count>());
        });
    }
    return rounded(type, std::move(values));
}

/// As `map`, with integer arithmetic modulo two to the power of the type's bits.
template <typename Function, typename... Tensors>
Tensor map_wrapping(const Type& type, Function function, const Tensors&... operands) {
    if (!is_integer(type.element)) {
        return map(type, function, operands...);
    }
    const auto on_bits = [&](auto... values) {
        return wrapped(function(bits_of(values)...), type.element);
    };
    return map(type, on_bits, operands...);
}

/// As `map`, with integers rounded to float32 as on the device: its precision decides the result.
template <typename Function, typename... Tensors>
Tensor map_in_floats(const Type& type, Function function, const Tensors&... operands) {
    if (!is_integer(type.element)) {
        return map(type, function, operands...);
    }
    const auto in_floats = [&](auto... values) -> double {
        return static_cast<float>(function(static_cast<double>(static_cast<float>(values))...));
    };
    return map(type, in_floats, operands...);
}

// Unary operations.

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

inline double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

/// The cumulative distribution function of the standard normal distribution.
inline double phi(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

/// The maximum; NaN if either operand is.
inline double greater(double a, double b) { return a > b || std::isnan(a) ? a : b; }

/// The minimum; NaN if either operand is.
inline double lesser(double a, double b) { return a < b || std::isnan(a) ? a : b; }

inline Tensor abs(const Type& type, const Tensor& input) {
    return map(type, [](double x) -> double { return std::fabs(x); }, input);
}

inline Tensor acos(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return std::acos(x); }, input);
}

inline Tensor asin(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return std::asin(x); }, input);
}

inline Tensor asinh(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return std::asinh(x); }, input);
}

inline Tensor atan(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return std::atan(x); }, input);
}

inline Tensor cbrt(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return std::cbrt(x); }, input);
}

inline Tensor ceil(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return std::ceil(x); }, input);
}

inline Tensor cos(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return std::cos(x); }, input);
}

inline Tensor erf(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return std::erf(x); }, input);
}

inline Tensor erfc(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return std::erfc(x); }, input);
}

inline Tensor exp(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return std::exp(x); }, input);
}

inline Tensor exp2(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return std::exp2(x); }, input);
}

inline Tensor expm1(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return std::expm1(x); }, input);
}

inline Tensor floor(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return std::floor(x); }, input);
}

inline Tensor frac(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return x - std::trunc(x); }, input);
}

inline Tensor gelu(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return x * phi(x); }, input);
}

inline Tensor hardsigmoid(const Type& type, const Tensor& input) {
    return map_in_floats(
        type, [](double x) -> double { return lesser(greater(x / 6 + 0.5, 0), 1); }, input);
}

inline Tensor isfinite(const Type& type, const Tensor& input) {
    return map(type, [](double x) -> double { return std::isfinite(x); }, input);
}

inline Tensor isinf(const Type& type, const Tensor& input) {
    return map(type, [](double x) -> double { return std::isinf(x); }, input);
}

inline Tensor isnan(const Type& type, const Tensor& input) {
    return map(type, [](double x) -> double { return std::isnan(x); }, input);
}

inline Tensor log(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return std::log(x); }, input);
}

inline Tensor log10(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return std::log10(x); }, input);
}

inline Tensor log2(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return std::log2(x); }, input);
}

/// Halves become even, in the default rounding mode.
inline Tensor round(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return std::nearbyint(x); }, input);
}

inline Tensor log1p(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return std::log1p(x); }, input);
}

inline Tensor logical_not(const Type& type, const Tensor& input) {
    return map(type, [](double x) -> double { return x == 0; }, input);
}

inline Tensor mish(const Type& type, const Tensor& input) {
    return map_in_floats(
        type, [](double x) -> double { return x * std::tanh(softplus(x)); }, input);
}

inline Tensor reciprocal(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return 1 / x; }, input);
}

inline Tensor relu(const Type& type, const Tensor& input) {
    return map(type, [](double x) -> double { return greater(x, 0); }, input);
}

inline Tensor relu6(const Type& type, const Tensor& input) {
    return map(type, [](double x) -> double { return lesser(greater(x, 0), 6); }, input);
}

inline Tensor rsqrt(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return 1 / std::sqrt(x); }, input);
}

inline Tensor sigmoid(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return sigmoid(x); }, input);
}

inline Tensor sign(const Type& type, const Tensor& input) {
    return map(
        type, [](double x) -> double { return std::isnan(x) ? x : (x > 0) - (x < 0); }, input);
}

inline Tensor signbit(const Type& type, const Tensor& input) {
    return map(type, [](double x) -> double { return std::signbit(x); }, input);
}

inline Tensor silu(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return x * sigmoid(x); }, input);
}

inline Tensor sin(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return std::sin(x); }, input);
}

inline Tensor softsign(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return x / (1 + std::fabs(x)); }, input);
}

inline Tensor sqrt(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return std::sqrt(x); }, input);
}

inline Tensor tan(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return std::tan(x); }, input);
}

inline Tensor tanh(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return std::tanh(x); }, input);
}

inline Tensor trunc(const Type& type, const Tensor& input) {
    return map_in_floats(type, [](double x) -> double { return std::trunc(x); }, input);
}

inline Tensor bitwise_not(const Type& type, const Tensor& input) {
    return map(type, [&](double x) { return wrapped(~bits_of(x), type.element); }, input);
}

inline Tensor neg(const Type& type, const Tensor& input) {
    return map_wrapping(type, [](auto x) { return -x; }, input);
}

inline Tensor square(const Type& type, const Tensor& input) {
    return map_wrapping(type, [](auto x) { return x * x; }, input);
}

/// Integers are truncated to the low bits of a narrower type; to 16 bits, they saturate.
inline Tensor typecast(const Type& type, const Tensor& input) {
    if (is_integer(input.element) && is_integer(type.element) &&
        type.element != ElementType::uint16) {
        return map(type, [&](double x) { return wrapped(bits_of(x), type.element); }, input);
    }
    return map(type, [](double x) { return x; }, input);
}

struct LeakyRelu {
    double parameter = 0.01;
};

inline Tensor leaky_relu(const Type& type, const Tensor& input, const LeakyRelu& attributes) {
    return map_in_floats(
        type, [&](double x) { return x > 0 ? x : x * attributes.parameter; }, input);
}

struct Elu {
    double alpha = 1;
};

inline Tensor elu(const Type& type, const Tensor& input, const Elu& attributes) {
    return map_in_floats(
        type, [&](double x) { return x > 0 ? x : attributes.alpha * std::expm1(x); }, input);
}

struct Selu {
    double scale = 1.0507009873390197;
    double alpha = 1.6732635498046875;
};

inline Tensor selu(const Type& type, const Tensor& input, const Selu& attributes) {
    return map_in_floats(
        type,
        [&](double x) { return attributes.scale * (x > 0 ? x : attributes.alpha * std::expm1(x)); },
        input);
}

/// Bounds as floats; for integers they are truncated.
struct Bounds {
    double min = -std::numeric_limits<double>::infinity();
    double max = std::numeric_limits<double>::infinity();
};

inline Tensor clamp_scalar(const Type& type, const Tensor& input, const Bounds& bounds) {
    const double least = rounded(bounds.min, input.element);
    const double greatest = rounded(bounds.max, input.element);
    return map(type, [&](double x) { return lesser(greater(x, least), greatest); }, input);
}

/// Reinterprets the bits of the elements as another type of the same width.
inline Tensor bitcast_convert(const Type& type, const Tensor& input) {
    const std::vector<std::byte> bytes = stored(input.elements, input.element);
    std::vector<double> values(input.elements.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = support::element_at(type.element, bytes.data(), i);
    }
    return {type.element, type.shape, std::move(values)};
}

// Operations of several operands, which broadcast.

inline Tensor atan2(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    return map_in_floats(
        type, [](double a, double b) -> double { return std::atan2(a, b); }, lhs, rhs);
}

inline Tensor eq(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    return map(type, [](double a, double b) -> double { return a == b; }, lhs, rhs);
}

inline Tensor ge(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    return map(type, [](double a, double b) -> double { return a >= b; }, lhs, rhs);
}

inline Tensor gt(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    return map(type, [](double a, double b) -> double { return a > b; }, lhs, rhs);
}

inline Tensor le(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    return map(type, [](double a, double b) -> double { return a <= b; }, lhs, rhs);
}

inline Tensor logical_and(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    return map(type, [](double a, double b) -> double { return a != 0 && b != 0; }, lhs, rhs);
}

inline Tensor logical_or(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    return map(type, [](double a, double b) -> double { return a != 0 || b != 0; }, lhs, rhs);
}

inline Tensor logical_xor(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    return map(type, [](double a, double b) -> double { return (a != 0) != (b != 0); }, lhs, rhs);
}

inline Tensor lt(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    return map(type, [](double a, double b) -> double { return a < b; }, lhs, rhs);
}

inline Tensor maximum(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    return map(type, [](double a, double b) -> double { return greater(a, b); }, lhs, rhs);
}

inline Tensor minimum(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    return map(type, [](double a, double b) -> double { return lesser(a, b); }, lhs, rhs);
}

inline Tensor ne(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    return map(type, [](double a, double b) -> double { return a != b; }, lhs, rhs);
}

inline Tensor pow(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    return map(type, [](double a, double b) -> double { return std::pow(a, b); }, lhs, rhs);
}

inline Tensor add(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    return map_wrapping(type, [](auto a, auto b) { return a + b; }, lhs, rhs);
}

inline Tensor multiply(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    return map_wrapping(type, [](auto a, auto b) { return a * b; }, lhs, rhs);
}

inline Tensor subtract(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    return map_wrapping(type, [](auto a, auto b) { return a - b; }, lhs, rhs);
}

inline Tensor bitwise_and(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    return map(
        type, [&](double a, double b) { return wrapped(bits_of(a) & bits_of(b), type.element); },
        lhs, rhs);
}

inline Tensor bitwise_or(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    return map(
        type, [&](double a, double b) { return wrapped(bits_of(a) | bits_of(b), type.element); },
        lhs, rhs);
}

inline Tensor bitwise_xor(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    return map(
        type, [&](double a, double b) { return wrapped(bits_of(a) ^ bits_of(b), type.element); },
        lhs, rhs);
}

/// Integer division truncates; division by 0 returns the dividend.
inline Tensor div(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    const bool integers = is_integer(lhs.element);
    return map(type, [&](double a, double b) { return integers && b == 0 ? a : a / b; }, lhs, rhs);
}

/// The remainder with the sign of the divisor; 0 for integers divided by 0.
inline Tensor remainder(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    const bool integers = is_integer(lhs.element);
    return map(
        type,
        [&](double a, double b) {
            if (integers && b == 0) {
                return 0.0;
            }
            const double rest = std::fmod(a, b);
            if (rest == 0) {
                return std::copysign(0.0, b);
            }
            return (rest < 0) != (b < 0) ? rest + b : rest;
        },
        lhs, rhs);
}

/// The width of an integer type in bits.
inline double width_of(ElementType element) {
    return 8.0 * static_cast<double>(element_size(element));
}

/// A negative shift, or one by at least the width of the type, gives 0.
inline Tensor logical_left_shift(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    const double width = width_of(type.element);
    return map(
        type,
        [&](double a, double b) {
            const bool inside = b >= 0 && b < width;
            return inside ? wrapped(bits_of(a) << bits_of(b), type.element) : 0.0;
        },
        lhs, rhs);
}

inline Tensor logical_right_shift(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    const double width = width_of(type.element);
    const std::uint64_t mask = (std::uint64_t{1} << static_cast<unsigned>(width)) - 1;
    return map(
        type,
        [&](double a, double b) {
            const bool inside = b >= 0 && b < width;
            return inside ? wrapped((bits_of(a) & mask) >> bits_of(b), type.element) : 0.0;
        },
        lhs, rhs);
}

/// Arithmetic shift: the sign bit is copied in from the left.
inline Tensor right_shift(const Type& type, const Tensor& lhs, const Tensor& rhs) {
    const double width = width_of(type.element);
    return map(
        type,
        [&](double a, double b) {
            const double places = b >= 0 && b < width ? b : width;
            return std::floor(std::ldexp(a, -static_cast<int>(places)));
        },
        lhs, rhs);
}

inline Tensor where(const Type& type, const Tensor& condition, const Tensor& first,
                    const Tensor& second) {
    return map(
        type, [](double c, double a, double b) { return c != 0 ? a : b; }, condition, first,
        second);
}

inline Tensor clamp_tensor(const Type& type, const Tensor& input, const Tensor& min,
                           const Tensor& max) {
    return map(
        type, [](double x, double least, double most) { return lesser(greater(x, least), most); },
        input, min, max);
}

/// The derivative of gelu, times the gradient of its result.
inline Tensor gelu_bw(const Type& type, const Tensor& gradient, const Tensor& input) {
    return map(
        type,
        [](double g, double x) {
            const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
            return g * (phi(x) + x * density);
        },
        gradient, input);
}

/// The same for `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`.
inline Tensor gelu_tanh_bw(const Type& type, const Tensor& gradient, const Tensor& input) {
    return map(
        type,
        [](double g, double x) {
            const double factor = std::sqrt(2 / std::numbers::pi);
            const double t = std::tanh(factor * (x + 0.044715 * x * x * x));
            const double inner = factor * (1 + 3 * 0.044715 * x * x);
            return g * ((1 + t) / 2 + x * (1 - t * t) * inner / 2);
        },
        gradient, input);
}

}  // namespace support::cpu
