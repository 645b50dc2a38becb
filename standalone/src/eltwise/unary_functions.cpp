#include "eltwise/unary_functions.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <variant>

#include "compute/exponential.hpp"
#include "eltwise/smooth_functions.hpp"
#include "eltwise/special_functions.hpp"

namespace ttcodegen::cpu {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

using P = UnaryParameters;

float first(P parameters) { return static_cast<float>(parameters.first); }
float second(P parameters) { return static_cast<float>(parameters.second); }
float truth(bool value) { return value ? 1.0F : 0.0F; }
/// The sign; of a NaN, its sign bit (tt-llk, ckernel_sfpu_sign.h).
float sign_of(float x) {
    return std::isnan(x) ? std::copysign(1.0F, x) : static_cast<float>((x > 0) - (x < 0));
}
std::int64_t sign_of(std::int64_t x) { return (x > 0) - (x < 0); }
float clamp(float x, float low, float high) {
    const float raised = x < low ? low : x;
    return raised > high ? high : raised;
}
/// Clamps like the vector engine, which compares signs and magnitudes: NaN is beyond the infinity
/// of its sign. Infinite bounds do not clamp.
float clamp_by_sign(float x, float low, float high) {
    const bool is_negative = std::signbit(x);
    if (std::isnan(x) && std::isfinite(is_negative ? low : high)) {
        return is_negative ? std::min(low, high) : high;
    }
    return clamp(x, low, high);
}
/// Converts to an integer, saturating at 64 bits, which also covers absent bounds.
std::int64_t whole(double value) {
    return static_cast<std::int64_t>(std::clamp(value, -9.0e18, 9.0e18));
}
std::int64_t whole_of(float value) { return value == value ? whole(value) : 0; }
float softplus_of(float x, float beta, float threshold) {
    return x * beta > threshold ? x : std::log1p(std::exp(beta * x)) / beta;
}

template <auto Function>
void floats(const float* input, float* output, std::size_t count, P parameters) {
    for (std::size_t i = 0; i < count; ++i) {
        output[i] = Function(input[i], parameters);
    }
}

template <auto Function>
void integers(const std::int64_t* input, std::int64_t* output, std::size_t count, P parameters) {
    for (std::size_t i = 0; i < count; ++i) {
        output[i] = Function(input[i], parameters);
    }
}

/// A row with the same expression for floats and integers.
#define BOTH(TYPE, EXPRESSION)                                                                    \
    UnaryFunction {                                                                               \
        UnaryOpType::TYPE, false,                                                                 \
            floats<([](float x, [[maybe_unused]] P p) -> float { return EXPRESSION; })>,          \
            integers<(                                                                            \
                [](std::int64_t x, [[maybe_unused]] P p) -> std::int64_t { return EXPRESSION; })> \
    }
#define CHEAP(TYPE, EXPRESSION)                                                   \
    UnaryFunction {                                                               \
        UnaryOpType::TYPE, false,                                                 \
            floats<([]([[maybe_unused]] float x, [[maybe_unused]] P p) -> float { \
                return EXPRESSION;                                                \
            })>,                                                                  \
            nullptr                                                               \
    }
#define COSTLY(TYPE, EXPRESSION)                                                                 \
    UnaryFunction {                                                                              \
        UnaryOpType::TYPE, true,                                                                 \
            floats<([](float x, [[maybe_unused]] P p) -> float { return EXPRESSION; })>, nullptr \
    }
#define INTEGER(TYPE, EXPRESSION)                                                                 \
    UnaryFunction {                                                                               \
        UnaryOpType::TYPE, false, floats<([](float v, [[maybe_unused]] P p) -> float {            \
            const std::int64_t x = whole_of(v);                                                   \
            return static_cast<float>(EXPRESSION);                                                \
        })>,                                                                                      \
            integers<(                                                                            \
                [](std::int64_t x, [[maybe_unused]] P p) -> std::int64_t { return EXPRESSION; })> \
    }

constexpr std::array kUnaryFunctions = {
    // Signs, comparisons and rounding
    BOTH(IDENTITY, x),
    BOTH(ABS, x < 0 ? -x : x),
    BOTH(ABS_INT32, x < 0 ? -x : x),
    BOTH(NEG, -x),
    BOTH(SIGN, sign_of(x)),
    UnaryFunction{UnaryOpType::SQUARE, false, floats<([](float x, P) -> float { return x * x; })>,
                  integers<([](std::int64_t x, P) -> std::int64_t {
                      const auto bits = static_cast<std::uint64_t>(x);  // wraps
                      return static_cast<std::int64_t>(bits * bits);
                  })>},
    BOTH(EQZ, x == 0),
    BOTH(NEZ, x != 0),
    BOTH(GTZ, x > 0),
    BOTH(LTZ, x < 0),
    BOTH(GEZ, x >= 0),
    BOTH(LEZ, x <= 0),
    BOTH(LOGICAL_NOT_UNARY, x == 0),
    BOTH(UNARY_EQ, x == p.first),
    BOTH(UNARY_NE, x != p.first),
    BOTH(UNARY_GT, x > p.first),
    BOTH(UNARY_LT, x < p.first),
    BOTH(UNARY_GE, x >= p.first),
    BOTH(UNARY_LE, x <= p.first),
    CHEAP(SIGNBIT, truth(std::signbit(x))),
    CHEAP(FLOOR, std::floor(x)),
    CHEAP(CEIL, std::ceil(x)),
    CHEAP(TRUNC, std::trunc(x)),
    CHEAP(FRAC, x - std::trunc(x)),
    COSTLY(ROUND, round_to_decimals(x, static_cast<int>(p.first))),
    CHEAP(ISINF, truth(std::fabs(x) == kInfinity)),
    CHEAP(ISPOSINF, truth(x == kInfinity)),
    CHEAP(ISNEGINF, truth(x == -kInfinity)),
    CHEAP(ISNAN, truth(!(x == x))),
    CHEAP(ISFINITE, truth(std::fabs(x) < kInfinity)),
    CHEAP(HEAVISIDE, x > 0.0F   ? 1.0F
                     : x < 0.0F ? 0.0F
                                : first(p)),
    INTEGER(BITWISE_NOT, ~x),
    INTEGER(BITWISE_AND, x& whole(p.first)),
    INTEGER(BITWISE_OR, x | whole(p.first)),
    INTEGER(BITWISE_XOR, x ^ whole(p.first)),

    // Arithmetic with a scalar
    UnaryFunction{UnaryOpType::FILL, false, floats<([](float, P p) -> float { return first(p); })>,
                  integers<([](std::int64_t, P p) -> std::int64_t { return whole(p.first); })>},
    CHEAP(ADD_UNARY_SFPU, x + first(p)),
    CHEAP(SUB_UNARY_SFPU, x - first(p)),
    CHEAP(MUL_UNARY_SFPU, x* first(p)),
    CHEAP(DIV_UNARY_SFPU, x / first(p)),
    CHEAP(RSUB, first(p) - x),
    CHEAP(RDIV, first(p) / x),
    COSTLY(POWER, std::pow(x, first(p))),
    COSTLY(POWER_ITERATIVE, std::pow(x, first(p))),
    COSTLY(RPOW, std::pow(first(p), x)),
    COSTLY(REMAINDER, remainder_of(x, first(p))),
    COSTLY(FMOD, std::fmod(x, first(p))),

    // Exponentials, logarithms, roots
    COSTLY(EXP, exponential(x)),
    COSTLY(EXP2, std::exp2(x)),
    COSTLY(EXPM1, std::expm1(x)),
    COSTLY(LOG, std::log(x)),
    COSTLY(LOG2, std::log2(x)),
    COSTLY(LOG10, std::log10(x)),
    COSTLY(LOG1P, std::log1p(x)),
    CHEAP(SQRT, std::sqrt(x)),
    CHEAP(RSQRT, 1.0F / std::sqrt(x)),
    COSTLY(CBRT, std::cbrt(x)),
    CHEAP(RECIP, 1.0F / x),

    // Trigonometry and special functions
    COSTLY(SIN, std::sin(x)),
    COSTLY(COS, std::cos(x)),
    COSTLY(TAN, std::tan(x)),
    COSTLY(ASIN, std::asin(x)),
    COSTLY(ACOS, std::acos(x)),
    COSTLY(ATAN, std::atan(x)),
    COSTLY(SINH, std::sinh(x)),
    COSTLY(COSH, std::cosh(x)),
    COSTLY(TANH, hyperbolic_tangent(x)),
    COSTLY(ASINH, std::asinh(x)),
    COSTLY(ACOSH, std::acosh(x)),
    COSTLY(ATANH, std::atanh(x)),
    COSTLY(ERF, std::erf(x)),
    COSTLY(ERFC, std::erfc(x)),
    COSTLY(ERFINV, inverse_error_function(x)),
    COSTLY(LGAMMA, std::lgamma(x)),
    COSTLY(DIGAMMA, digamma(x)),
    COSTLY(I0, modified_bessel_0(x)),
    COSTLY(I1, modified_bessel_1(x)),
    COSTLY(LOGIT, logit_of(x, first(p))),

    // Activations
    BOTH(RELU, x > 0 || x != x ? x : 0),
    CHEAP(RELU6, clamp(x, 0.0F, 6.0F)),
    CHEAP(RELU_MAX, clamp(x, 0.0F, first(p))),
    CHEAP(RELU_MIN, x > first(p) ? x : first(p)),
    CHEAP(LEAKY_RELU, x > 0.0F ? x : x * first(p)),
    CHEAP(PRELU_SFPU, x > 0.0F ? x : x * first(p)),
    COSTLY(SIGMOID, logistic(x)),
    COSTLY(SILU, x* logistic(x)),
    COSTLY(LOGSIGMOID, -softplus_of(-x, 1.0F, 20.0F)),
    CHEAP(HARDSIGMOID, clamp(x * (1.0F / 6.0F) + 0.5F, 0.0F, 1.0F)),
    CHEAP(HARDSWISH, x* clamp(x * (1.0F / 6.0F) + 0.5F, 0.0F, 1.0F)),
    CHEAP(HARDTANH, clamp(x, first(p), second(p))),
    CHEAP(HARDSHRINK, std::fabs(x) > first(p) ? x : 0.0F),
    CHEAP(SOFTSHRINK, x > first(p)    ? x - first(p)
                      : x < -first(p) ? x + first(p)
                                      : 0.0F),
    CHEAP(SOFTSIGN, x / (1.0F + std::fabs(x))),
    CHEAP(THRESHOLD, x > first(p) ? x : second(p)),
    COSTLY(SOFTPLUS, softplus_of(x, first(p), second(p))),
    COSTLY(GELU, gelu_of(x)),
    COSTLY(ELU, x > 0.0F ? x : first(p) * std::expm1(x)),
    COSTLY(CELU, x > 0.0F ? x : first(p) * std::expm1(x / first(p))),
    COSTLY(SELU, first(p) * (x > 0.0F ? x : second(p) * std::expm1(x))),
    COSTLY(TANHSHRINK, x - std::tanh(x)),
    COSTLY(MISH, x* std::tanh(softplus_of(x, 1.0F, 20.0F))),
    CHEAP(HARDMISH, x* clamp(x + 2.8F, 0.0F, 5.0F) * 0.2F),
    UnaryFunction{
        UnaryOpType::CLAMP_TSS, false,
        floats<([](float x, P p) -> float { return clamp_by_sign(x, first(p), second(p)); })>,
        integers<([](std::int64_t x, P p) -> std::int64_t {
            return std::min(std::max(x, whole(p.first)), whole(p.second));
        })>},
};

#undef BOTH
#undef CHEAP
#undef COSTLY
#undef INTEGER

}  // namespace

const UnaryFunction& unary_function(UnaryOpType type) {
    const auto row =
        std::find_if(kUnaryFunctions.begin(), kUnaryFunctions.end(),
                     [&](const UnaryFunction& function) { return function.type == type; });
    TT_FATAL(row != kUnaryFunctions.end(), "The CPU backend has no unary operation number {}",
             static_cast<int>(type));
    return *row;
}

UnaryParameters parameters_of(const EltwiseUnaryWithParam& operation) {
    // Without parameters an activation has the defaults of the ttnn function of its name.
    UnaryParameters parameters;
    switch (operation.type()) {
        case UnaryOpType::LEAKY_RELU:
            parameters = {0.01, 0.0};
            break;
        case UnaryOpType::ELU:
        case UnaryOpType::CELU:
            parameters = {1.0, 0.0};
            break;
        case UnaryOpType::SOFTPLUS:
            parameters = {1.0, 20.0};
            break;
        case UnaryOpType::SELU:
            parameters = {1.050700987, 1.673263242};
            break;
        case UnaryOpType::HARDTANH:
            parameters = {-1.0, 1.0};
            break;
        default:
            break;
    }
    std::visit(
        [&](const auto& values) {
            if (!values.empty()) {
                parameters.first = static_cast<double>(values[0]);
            }
            if (values.size() > 1) {
                parameters.second = static_cast<double>(values[1]);
            }
        },
        operation.get_params());
    return parameters;
}

void apply_activations(std::span<const EltwiseUnaryWithParam> activations, float* values,
                       std::size_t count) {
    for (const EltwiseUnaryWithParam& activation : activations) {
        // The parameter of these selects an approximation, which the CPU backend does not make.
        unary_function(activation.type()).floats(values, values, count, parameters_of(activation));
    }
}

}  // namespace ttcodegen::cpu
