"""The table of `ttl.math` functions of each element.

A function's name, its section in Appendix B of the TT-Lang specification (0.22), its meaning in
numpy and the names of its numbers. `ttl.math`, the simulator, the compiler and the table of the
documentation are derived from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from ttcodegen.ops.elementwise.unary import gelu, sigmoid

Array = np.ndarray


@dataclass(frozen=True)
class MathFunction:
    """A function of one block expression and numbers."""

    name: str
    section: str
    meaning: Callable[..., Array]
    """Of the elements, float32, and the numbers."""
    numbers: tuple[str, ...] = ()
    """The names of the numbers, in order."""
    flags: tuple[str, ...] = ()
    """The names of keyword options of how the device computes it."""


_BASIC = "Basic unary math functions"
_TRIGONOMETRIC = "Trigonometric unary math functions"
_ACTIVATION = "Activation functions"
_ROUNDING = "Rounding functions"


def _exp(x: Array) -> Array:
    return np.exp(x)


def _softplus(x: Array, beta: float, beta_reciprocal: float, threshold: float) -> Array:
    scaled = x * beta
    return np.where(scaled > threshold, x, np.logaddexp(scaled, np.float32(0)) * beta_reciprocal)


def _relu_min(x: Array, least: float) -> Array:
    return np.maximum(np.maximum(x, least), 0)


def _leaky_relu(x: Array, slope: float) -> Array:
    return np.where(x > 0, x, x * slope)


def _elu(x: Array, slope: float) -> Array:
    return np.where(x > 0, x, slope * np.expm1(x))


def _celu(x: Array, alpha: float, alpha_recip: float) -> Array:
    return np.where(x > 0, x, alpha * np.expm1(x * alpha_recip))


def _selu(x: Array, scale: float, alpha: float) -> Array:
    return scale * _elu(x, alpha)


def _threshold(x: Array, threshold: float, value: float) -> Array:
    """The specification replaces what is greater, PyTorch's function of this name what is not."""
    return np.where(x > threshold, value, x)


def _clip(x: Array, least: float, most: float) -> Array:
    return np.clip(x, least, most)


def _relu_max(x: Array, most: float) -> Array:
    return np.clip(x, 0, most)


def _rsub(x: Array, b: float) -> Array:
    return b - x


def _round(x: Array, decimals: float) -> Array:
    return np.round(x, int(decimals))


def _of(name: str, section: str, meaning: Callable[[Array], Array]) -> MathFunction:
    """A function without numbers."""
    return MathFunction(name, section, meaning)


_F = MathFunction


@dataclass(frozen=True)
class ExponentialFlags:
    """Options of `ttl.math.exp`; only the scale changes the result."""

    approx: bool = False
    scale: float | None = None
    skip_clamp_check: bool = False
    iterations: int = 8
    """Steps of the vector engine: 8 compute whole tiles."""


MATH_FUNCTIONS: dict[str, MathFunction] = {
    function.name: function
    for function in (
        _of("abs", _BASIC, lambda x: np.abs(x)),
        _of("neg", _BASIC, lambda x: np.negative(x)),
        _F("exp", _BASIC, _exp, flags=tuple(each.name for each in fields(ExponentialFlags))),
        _of("exp2", _BASIC, lambda x: np.exp2(x)),
        _of("expm1", _BASIC, lambda x: np.expm1(x)),
        _of("log", _BASIC, lambda x: np.log(x)),
        _of("logp1", _BASIC, lambda x: np.log1p(x)),
        _of("sqrt", _BASIC, lambda x: np.sqrt(x)),
        _of("square", _BASIC, lambda x: np.square(x)),
        _of("rsqrt", _BASIC, lambda x: 1 / np.sqrt(x)),
        _of("recip", _BASIC, lambda x: 1 / x),
        _F("rsub", _BASIC, _rsub, ("b",)),
        _of("tan", _TRIGONOMETRIC, lambda x: np.tan(x)),
        _of("tanh", _TRIGONOMETRIC, lambda x: np.tanh(x)),
        _of("atan", _TRIGONOMETRIC, lambda x: np.arctan(x)),
        _of("atanh", _TRIGONOMETRIC, lambda x: np.arctanh(x)),
        _of("sin", _TRIGONOMETRIC, lambda x: np.sin(x)),
        _of("asin", _TRIGONOMETRIC, lambda x: np.arcsin(x)),
        _of("asinh", _TRIGONOMETRIC, lambda x: np.arcsinh(x)),
        _of("cos", _TRIGONOMETRIC, lambda x: np.cos(x)),
        _of("acos", _TRIGONOMETRIC, lambda x: np.arccos(x)),
        _of("acosh", _TRIGONOMETRIC, lambda x: np.arccosh(x)),
        _of("relu", _ACTIVATION, lambda x: np.maximum(x, 0)),
        _F("relu_max", _ACTIVATION, _relu_max, ("upper_limit",)),
        _F("relu_min", _ACTIVATION, _relu_min, ("lower_limit",)),
        _F("leaky_relu", _ACTIVATION, _leaky_relu, ("slope",)),
        _F("elu", _ACTIVATION, _elu, ("slope",)),
        _of("gelu", _ACTIVATION, gelu),
        _of("sigmoid", _ACTIVATION, sigmoid),
        _F("celu", _ACTIVATION, _celu, ("alpha", "alpha_recip")),
        _of("silu", _ACTIVATION, lambda x: x * sigmoid(x)),
        _F("prelu", _ACTIVATION, _leaky_relu, ("alpha",)),
        _F("softplus", _ACTIVATION, _softplus, ("beta", "beta_reciprocal", "threshold")),
        _of("softsign", _ACTIVATION, lambda x: x / (1 + np.abs(x))),
        _of("hardsigmoid", _ACTIVATION, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
        _F("hardtanh", _ACTIVATION, _clip, ("min", "max")),
        _F("selu", _ACTIVATION, _selu, ("scale", "alpha")),
        _of("frac", _ROUNDING, lambda x: x - np.trunc(x)),
        _of("trunc", _ROUNDING, lambda x: np.trunc(x)),
        _F("round", _ROUNDING, _round, ("decimals",)),
        _of("floor", _ROUNDING, lambda x: np.floor(x)),
        _of("ceil", _ROUNDING, lambda x: np.ceil(x)),
        _F("clamp", _ROUNDING, _clip, ("min", "max")),
        _F("threshold", _ROUNDING, _threshold, ("threshold", "value")),
        _of("sign", _ROUNDING, lambda x: np.sign(x)),
        # Positive is 1: the words of the specification.
        _of("signbit", _ROUNDING, lambda x: ~np.signbit(x)),
    )
}  # fmt: skip
"""By name."""

COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
"""Comparisons of the elements of two expressions, which give 1 or 0."""
