// Operations of the vector engine on one tile of floats.

#include <array>
#include <cmath>
#include <limits>

#include "compute/exponential.hpp"
#include "device/compute/sfpu_rows.hpp"
#include "eltwise/smooth_functions.hpp"
#include "eltwise/special_functions.hpp"
#include "eltwise/unary_functions.hpp"

namespace ttcodegen::device::compute {

namespace {

using cpu::UnaryOpType;

/// Computes the ttnn function with the same meaning, from the same parameters.
template <UnaryOpType type>
void as_in_ttnn(const SfpuOperands& operands) {
    static const cpu::UnaryFunction& function = cpu::unary_function(type);
    const cpu::UnaryParameters parameters{operands.number(0), operands.number(1)};
    operands.each_run([&](std::size_t begin, std::size_t count) {
        function.floats(operands.inputs[0]->floats() + begin, operands.output->floats() + begin,
                        count, parameters);
    });
}

float softplus(float x, float beta, float reciprocal, float threshold) {
    const float scaled = beta * x;
    return scaled < threshold ? reciprocal * std::log1p(cpu::exponential(scaled)) : x;
}

float gelu_derivative(float x) {
    const float distribution = 0.5F * std::erfc(-x * 0.70710678F);
    return distribution + x * 0.39894228F * cpu::exponential(-0.5F * x * x);
}

float xielu(float x, float positive, float negative) {
    constexpr float kBeta = 0.5F;
    constexpr float kEpsilon = -1e-6F;
    return x > 0.0F ? positive * x * x + kBeta * x
                    : (std::expm1(std::fmin(x, kEpsilon)) - x) * negative + kBeta * x;
}

/// The derivative of order n of the digamma function, by its series with an Euler-Maclaurin tail;
/// `factor` is (-1)^(n+1) n!.
float polygamma(float x, float order, float factor) {
    const double n = order;
    double sum = 0.0;
    constexpr int kTerms = 12;
    for (int k = 0; k < kTerms; ++k) {
        sum += std::pow(x + k, -(n + 1.0));
    }
    const double z = x + kTerms;
    sum += std::pow(z, -n) / n + 0.5 * std::pow(z, -(n + 1.0)) +
           (n + 1.0) / 12.0 * std::pow(z, -(n + 2.0)) -
           (n + 1.0) * (n + 2.0) * (n + 3.0) / 720.0 * std::pow(z, -(n + 4.0));
    return static_cast<float>(factor * sum);
}

float rounded_quotient(float quotient, std::uint32_t rounding) {
    return rounding == 1 ? std::trunc(quotient) : rounding == 2 ? std::floor(quotient) : quotient;
}

float integer_power(float base, std::uint32_t exponent) {
    float result = 1.0F;
    for (std::uint32_t i = 0; i < exponent; ++i) {
        result *= base;
    }
    return result;
}

/// e^(scale * x); the scale comes from the call and, for approximations, the initialisation.
void exponential_of(const SfpuOperands& operands) {
    const float scale =
        operands.number(0) * std::bit_cast<float>(operands.memory->init_parameters[0]);
    const float* input = operands.inputs[0]->floats();
    float* output = operands.output->floats();
    operands.each_run([&](std::size_t begin, std::size_t count) {
        for (std::size_t i = begin; i < begin + count; ++i) {
            output[i] = cpu::exponential(scale * input[i]);
        }
    });
}

#define AS_TTNN(OPERATION, INIT, CONSTANTS, TYPE)                                    \
    TTCODEGEN_SFPU_ROW(OPERATION, #OPERATION "_tile", INIT, CONSTANTS, Float, Float, \
                       as_in_ttnn<UnaryOpType::TYPE>)
#define FLOATS(OPERATION, INIT, CONSTANTS, EXPRESSION)                               \
    TTCODEGEN_SFPU_ROW(OPERATION, #OPERATION "_tile", INIT, CONSTANTS, Float, Float, \
                       TTCODEGEN_SFPU_1(float, EXPRESSION))

constexpr std::array kUnaryRows{
    // Exponentials, logarithms, roots
    TTCODEGEN_SFPU_ROW(exp, "exp_tile", exp, true, Float, Float, exponential_of),
    AS_TTNN(exp2, exp2, true, EXP2),
    AS_TTNN(expm1, expm1, true, EXPM1),
    AS_TTNN(log, log, true, LOG),
    FLOATS(log_with_base, log_with_base, true, std::log(a) * p.p0),
    AS_TTNN(log1p, log1p, true, LOG1P),
    AS_TTNN(sqrt, sqrt, true, SQRT),
    AS_TTNN(rsqrt, rsqrt, true, RSQRT),
    AS_TTNN(cbrt, cbrt, true, CBRT),
    AS_TTNN(recip, recip, true, RECIP),
    AS_TTNN(square, square, false, SQUARE),
    AS_TTNN(power, power, true, POWER),
    FLOATS(power_iterative, power_iterative, false, integer_power(a, p.u0)),
    AS_TTNN(rpow, rpow, true, RPOW),

    // Trigonometry and special functions
    AS_TTNN(sin, sin, true, SIN),
    AS_TTNN(cos, cos, true, COS),
    AS_TTNN(tan, tan, true, TAN),
    AS_TTNN(asin, asin, false, ASIN),
    AS_TTNN(acos, acos, false, ACOS),
    AS_TTNN(atan, atan, true, ATAN),
    AS_TTNN(sinh, sinh, true, SINH),
    AS_TTNN(cosh, cosh, true, COSH),
    AS_TTNN(asinh, asinh, true, ASINH),
    AS_TTNN(acosh, acosh, true, ACOSH),
    AS_TTNN(atanh, atanh, true, ATANH),
    AS_TTNN(tanh, tanh, true, TANH),
    FLOATS(tanh_derivative, tanh_derivative, true,
           1.0F - cpu::hyperbolic_tangent(a) * cpu::hyperbolic_tangent(a)),
    AS_TTNN(erf, erf, true, ERF),
    AS_TTNN(erfc, erfc, true, ERFC),
    AS_TTNN(erfinv, erfinv, true, ERFINV),
    AS_TTNN(digamma, digamma, true, DIGAMMA),
    FLOATS(lgamma_stirling, lgamma_stirling, true, std::lgamma(a < 0.5F ? 1.0F - a : a)),
    FLOATS(polygamma, polygamma, true, polygamma(a, p.p0, p.p1)),
    AS_TTNN(i0, i0, false, I0),
    AS_TTNN(i1, i1, false, I1),

    // Activations
    AS_TTNN(relu, relu, false, RELU),
    AS_TTNN(relu_max, relu_max, false, RELU_MAX),
    AS_TTNN(relu_min, relu, false, RELU_MIN),
    AS_TTNN(leaky_relu, leaky_relu, false, LEAKY_RELU),
    AS_TTNN(prelu, prelu, false, PRELU_SFPU),
    AS_TTNN(elu, elu, false, ELU),
    AS_TTNN(celu, celu, false, CELU),
    AS_TTNN(selu, selu, false, SELU),
    AS_TTNN(sigmoid, sigmoid, true, SIGMOID),
    AS_TTNN(silu, silu, true, SILU),
    AS_TTNN(gelu, gelu, true, GELU),
    FLOATS(gelu_derivative, gelu_derivative, true, gelu_derivative(a)),
    AS_TTNN(hardsigmoid, hardsigmoid, true, HARDSIGMOID),
    AS_TTNN(hardtanh, hardtanh, false, HARDTANH),
    AS_TTNN(hardshrink, hardshrink, false, HARDSHRINK),
    AS_TTNN(softshrink, softshrink, false, SOFTSHRINK),
    AS_TTNN(softsign, softsign, true, SOFTSIGN),
    FLOATS(softplus, softplus, false, softplus(a, p.p0, p.p1, p.p2)),
    AS_TTNN(threshold, threshold, false, THRESHOLD),
    AS_TTNN(hardmish, hardmish, false, HARDMISH),
    FLOATS(xielu, xielu, true, xielu(a, p.p0, p.p1)),
    AS_TTNN(clamp, clamp, false, CLAMP_TSS),
    AS_TTNN(heaviside, heaviside, false, HEAVISIDE),

    // Signs, comparisons, rounding
    AS_TTNN(abs, abs, false, ABS),
    AS_TTNN(sign, sign, false, SIGN),
    AS_TTNN(signbit, signbit, true, SIGNBIT),
    AS_TTNN(negative, negative, false, NEG),
    AS_TTNN(isinf, isinf, false, ISINF),
    AS_TTNN(isposinf, isposinf, false, ISPOSINF),
    AS_TTNN(isneginf, isneginf, false, ISNEGINF),
    AS_TTNN(isnan, isnan, false, ISNAN),
    AS_TTNN(isfinite, isfinite, false, ISFINITE),
    AS_TTNN(eqz, eqz, false, EQZ),
    AS_TTNN(nez, nez, false, NEZ),
    AS_TTNN(gtz, gtz, false, GTZ),
    AS_TTNN(gez, gez, false, GEZ),
    AS_TTNN(ltz, ltz, false, LTZ),
    AS_TTNN(lez, lez, false, LEZ),
    AS_TTNN(unary_eq, unary_eq, false, UNARY_EQ),
    AS_TTNN(unary_ne, unary_ne, false, UNARY_NE),
    AS_TTNN(unary_gt, unary_gt, false, UNARY_GT),
    AS_TTNN(unary_ge, unary_ge, false, UNARY_GE),
    AS_TTNN(unary_lt, unary_lt, false, UNARY_LT),
    AS_TTNN(unary_le, unary_le, false, UNARY_LE),
    FLOATS(unary_max, unary_max, true, comes_before(a, p.p0) ? p.p0 : a),
    FLOATS(unary_min, unary_min, true, comes_before(p.p0, a) ? p.p0 : a),
    AS_TTNN(ceil, ceil, false, CEIL),
    AS_TTNN(floor, ceil, false, FLOOR),
    AS_TTNN(trunc, ceil, false, TRUNC),
    AS_TTNN(frac, ceil, false, FRAC),
    FLOATS(round, ceil, false, cpu::round_to_decimals(a, p.i0)),

    // Arithmetic with a scalar. The reciprocal of a divisor is computed on the host.
    AS_TTNN(add_unary, add_unary, false, ADD_UNARY_SFPU),
    AS_TTNN(sub_unary, add_unary, false, SUB_UNARY_SFPU),
    AS_TTNN(mul_unary, add_unary, false, MUL_UNARY_SFPU),
    AS_TTNN(div_unary, add_unary, false, MUL_UNARY_SFPU),
    AS_TTNN(rsub_unary, add_unary, false, RSUB),
    FLOATS(rdiv, rdiv, true, rounded_quotient(p.p0 / a, p.u1)),
    AS_TTNN(fmod, fmod, true, FMOD),
    AS_TTNN(remainder, remainder, true, REMAINDER),
    TTCODEGEN_SFPU_ROW(fill, "fill_tile", fill, false, None, Float,
                       TTCODEGEN_SFPU_1(float, (void(a), p.p0))),
};

#undef AS_TTNN
#undef FLOATS

}  // namespace

std::span<const SfpuRow> sfpu_unary_rows() { return kUnaryRows; }

}  // namespace ttcodegen::device::compute
