#pragma once

namespace ttcodegen::cpu {

/// `x` rounded to `decimals` decimal places, ties to even.
float round_to_decimals(float x, int decimals);
/// The inverse error function.
float inverse_error_function(float x);
/// The derivative of lgamma.
float digamma(float x);
/// Modified Bessel functions of the first kind, of order 0 and 1.
float modified_bessel_0(float x);
float modified_bessel_1(float x);
/// log(x / (1 - x)); with `eps` >= 0, x is first clamped to [eps, 1 - eps].
float logit_of(float x, float eps);

}  // namespace ttcodegen::cpu
