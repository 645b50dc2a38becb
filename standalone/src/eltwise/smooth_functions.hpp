#pragma once

// Branch-free functions without library calls, so that loops over them vectorise.

#include <cmath>

#include "compute/exponential.hpp"

namespace ttcodegen::cpu {

/// tanh within a few units in the last place: a polynomial near 0, where 1 - 2 / (e^2x + 1) suffers
/// from cancellation.
inline float hyperbolic_tangent(float x) {
    const float magnitude = std::fabs(x);
    const float square = x * x;
    float series = -5.70498872745e-3F;
    series = series * square + 2.06390887954e-2F;
    series = series * square - 5.37397155531e-2F;
    series = series * square + 1.33314422036e-1F;
    series = series * square - 3.33332819422e-1F;
    const float near_zero = x + x * square * series;
    const float far = 1.0F - 2.0F / (exponential(2.0F * magnitude) + 1.0F);
    return magnitude < 0.625F ? near_zero : std::copysign(far, x);
}

/// The complementary error function for x >= 0, fractional error 1.2e-7 (Chebyshev fit of Numerical
/// Recipes, section 6.2).
inline float complementary_error(float x) {
    const float t = 1.0F / (1.0F + 0.5F * x);
    float fit = 0.17087277F;
    fit = fit * t - 0.82215223F;
    fit = fit * t + 1.48851587F;
    fit = fit * t - 1.13520398F;
    fit = fit * t + 0.27886807F;
    fit = fit * t - 0.18628806F;
    fit = fit * t + 0.09678418F;
    fit = fit * t + 0.37409196F;
    fit = fit * t + 1.00002368F;
    fit = fit * t - 1.26551223F;
    return t * exponential(fit - x * x);
}

/// x times the normal cumulative distribution, as accurate for very negative x as for others.
inline float gelu_of(float x) {
    constexpr float kHalfSqrt2 = 0.70710678F;
    const float tail = 0.5F * complementary_error(std::fabs(x) * kHalfSqrt2);
    return x * (x < 0.0F ? tail : 1.0F - tail);
}

}  // namespace ttcodegen::cpu
