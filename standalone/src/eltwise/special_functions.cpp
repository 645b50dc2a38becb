#include "eltwise/special_functions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace ttcodegen::cpu {

namespace {

/// Sum over k of (x/2)^(2k + order) / (k! (k + order)!), which converges for every x.
double bessel_series(double x, int order) {
    const double quarter = x * x / 4.0;
    double term = order == 0 ? 1.0 : x / 2.0;
    double sum = term;
    for (int k = 1; k < 1000 && std::fabs(term) > 1e-17 * std::fabs(sum); ++k) {
        term *= quarter / (static_cast<double>(k) * (k + order));
        sum += term;
    }
    return sum;
}

}  // namespace

float round_to_decimals(float x, int decimals) {
    const double scale = std::pow(10.0, decimals);
    return static_cast<float>(std::nearbyint(static_cast<double>(x) * scale) / scale);
}

float inverse_error_function(float x) {
    if (!(std::fabs(x) < 1.0F)) {
        return std::fabs(x) == 1.0F ? std::copysign(std::numeric_limits<float>::infinity(), x)
                                    : std::numeric_limits<float>::quiet_NaN();
    }
    // Winitzki's approximation, refined by Newton steps on erf(y) - x.
    const double target = x;
    const double logarithm = std::log1p(-target * target);
    const double half = 2.0 / (std::numbers::pi * 0.147) + logarithm / 2.0;
    double y = std::copysign(std::sqrt(std::sqrt(half * half - logarithm / 0.147) - half), target);
    for (int step = 0; step < 3; ++step) {
        const double slope = 2.0 * std::numbers::inv_sqrtpi * std::exp(-y * y);
        y -= slope > 0.0 ? (std::erf(y) - target) / slope : 0.0;
    }
    return static_cast<float>(y);
}

float digamma(float x) {
    if (x <= 0.0F && x == std::floor(x)) {
        return std::numeric_limits<float>::quiet_NaN();
    }
    double value = 0.0;
    double argument = x;
    if (argument < 0.0) {
        value -= std::numbers::pi / std::tan(std::numbers::pi * argument);
        argument = 1.0 - argument;
    }
    // The recurrence increases the argument until the asymptotic series is accurate enough.
    for (; argument < 8.0; argument += 1.0) {
        value -= 1.0 / argument;
    }
    const double square = 1.0 / (argument * argument);
    value += std::log(argument) - 0.5 / argument -
             square * (1.0 / 12.0 - square * (1.0 / 120.0 - square / 252.0));
    return static_cast<float>(value);
}

float modified_bessel_0(float x) { return static_cast<float>(bessel_series(x, 0)); }
float modified_bessel_1(float x) { return static_cast<float>(bessel_series(x, 1)); }

float logit_of(float x, float eps) {
    const float clamped = eps >= 0.0F ? std::clamp(x, eps, 1.0F - eps) : x;
    return std::log(clamped / (1.0F - clamped));
}

}  // namespace ttcodegen::cpu
