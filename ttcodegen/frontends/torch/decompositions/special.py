"""Special functions by series and rational approximations of float32 precision."""

from __future__ import annotations

from math import factorial, inf, log, nan, pi, sqrt
from typing import Any

from ttcodegen.frontends.torch.decompositions.polynomials import (
    AIRY,
    BESSEL_I0,
    BESSEL_I1,
    BESSEL_J0,
    BESSEL_J1,
    BESSEL_K0,
    BESSEL_K1,
    BESSEL_Y0,
    BESSEL_Y1,
    NORMAL_QUANTILE,
    SCALED_ERFC,
)
from ttcodegen.frontends.torch.decompositions.tracing import (
    Decomposition,
    Decompositions,
    Tensor,
    chebyshev,
    horner,
    in_float32,
    torch,
)

_SQRT_2_OVER_PI = sqrt(2 / pi)

# Bessel functions


def _hankel_expansion(
    table: dict[str, tuple[float, ...]], x: Tensor, shift: float
) -> tuple[Any, Any]:
    """Hankel's asymptotic expansion of Bessel functions of the first and second kind, for x > 5."""
    z = 25.0 / (x * x)
    p = horner(table["PP"], z) / horner(table["PQ"], z)
    q = 5.0 / x * (horner(table["QP"], z) / horner(table["QQ"], z))
    cosine, sine = torch.cos(x - shift), torch.sin(x - shift)
    factor = _SQRT_2_OVER_PI / torch.sqrt(x)
    return (p * cosine - q * sine) * factor, (p * sine + q * cosine) * factor


def _bessel_j0(x: Tensor) -> Tensor:
    x = x.abs()
    square = x * x
    near = (square - 5.78318596294678452118) * (square - 30.4712623436620863991)
    near = near * horner(BESSEL_J0["RP"], square) / horner(BESSEL_J0["RQ"], square)
    far, _ = _hankel_expansion(BESSEL_J0, x.clamp(min=5.0), pi / 4)
    return torch.where(x <= 5.0, near, far)


def _bessel_j1(x: Tensor) -> Tensor:
    size, square = x.abs(), x * x
    near = horner(BESSEL_J1["RP"], square) / horner(BESSEL_J1["RQ"], square)
    near = near * size * (square - 14.6819706421238932572) * (square - 49.2184563216946036703)
    far, _ = _hankel_expansion(BESSEL_J1, size.clamp(min=5.0), 3 * pi / 4)
    found = torch.where(size <= 5.0, near, far)
    return torch.where(x < 0, -found, found)


def _with_pole(x: Tensor, found: Tensor, limit: float) -> Tensor:
    """Function with a pole at 0 and no real value below."""
    found = torch.where(x < 0, nan, found)
    return torch.where(x == 0, limit, found)


def _bessel_y0(x: Tensor) -> Tensor:
    square = x * x
    near = horner(BESSEL_Y0["YP"], square) / horner(BESSEL_Y0["YQ"], square)
    near = near + 2 / pi * torch.log(x) * _bessel_j0(x)
    _, far = _hankel_expansion(BESSEL_Y0, x.clamp(min=5.0), pi / 4)
    return _with_pole(x, torch.where(x <= 5.0, near, far), -inf)


def _bessel_y1(x: Tensor) -> Tensor:
    square = x * x
    near = x * (horner(BESSEL_Y1["YP"], square) / horner(BESSEL_Y1["YQ"], square))
    near = near + 2 / pi * (_bessel_j1(x) * torch.log(x) - 1.0 / x)
    _, far = _hankel_expansion(BESSEL_Y1, x.clamp(min=5.0), 3 * pi / 4)
    return _with_pole(x, torch.where(x <= 5.0, near, far), -inf)


def _scaled_i0(x: Tensor) -> Tensor:
    """e^-|x| I0(x)."""
    size = x.abs()
    near = chebyshev(BESSEL_I0["A"], size * 0.5 - 2.0)
    above = size.clamp(min=8.0)
    far = chebyshev(BESSEL_I0["B"], 32.0 / above - 2.0) / torch.sqrt(above)
    return torch.where(size <= 8.0, near, far)


def _scaled_i1(x: Tensor) -> Tensor:
    """e^-|x| I1(x)."""
    size = x.abs()
    near = chebyshev(BESSEL_I1["A"], size * 0.5 - 2.0) * size
    above = size.clamp(min=8.0)
    far = chebyshev(BESSEL_I1["B"], 32.0 / above - 2.0) / torch.sqrt(above)
    found = torch.where(size <= 8.0, near, far)
    return torch.where(x < 0, -found, found)


def _bessel_i0(x: Tensor) -> Tensor:
    return torch.exp(x.abs()) * _scaled_i0(x)


def _bessel_i1(x: Tensor) -> Tensor:
    return torch.exp(x.abs()) * _scaled_i1(x)


def _modified_k(order: int, scaled: bool) -> Decomposition:
    table = (BESSEL_K0, BESSEL_K1)[order]

    def function(x: Tensor) -> Tensor:
        inner = x.clamp(max=2.0)
        series = chebyshev(table["A"], inner * inner - 2.0)
        if order == 0:
            near = series - torch.log(0.5 * inner) * _bessel_i0(inner)
        else:
            near = torch.log(0.5 * inner) * _bessel_i1(inner) + series / inner
        above = x.clamp(min=2.0)
        far = chebyshev(table["B"], 8.0 / above - 2.0) / torch.sqrt(above)
        if scaled:
            near = near * torch.exp(inner)
        else:
            far = far * torch.exp(-above)
        return _with_pole(x, torch.where(x <= 2.0, near, far), inf)

    return function


def _spherical_bessel_j0(x: Tensor) -> Tensor:
    square = x * x
    terms = [(-1) ** n / factorial(2 * n + 1) for n in range(6, -1, -1)]
    near = horner(terms, square)
    found = torch.where(x.abs() < 0.5, near, torch.sin(x) / x)
    return torch.where(torch.isinf(x), 0.0, found)


def _airy_ai(x: Tensor) -> Tensor:
    """Airy function Ai: rational approximations for |x| > 2.09, power series between."""
    below = x.clamp(max=-2.09)
    root = torch.sqrt(-below)
    angle = -2.0 * below * root / 3.0
    z = 1.0 / angle
    square = z * z
    even = 1.0 + square * horner(AIRY["AFN"], square) / horner(AIRY["AFD"], square)
    odd = z * horner(AIRY["AGN"], square) / horner(AIRY["AGD"], square)
    angle = angle + pi / 4
    low = (torch.sin(angle) * even - torch.cos(angle) * odd) / (sqrt(pi) * torch.sqrt(root))
    above = x.clamp(min=2.09)
    zeta = 2.0 * above * torch.sqrt(above) / 3.0
    ratio = horner(AIRY["AN"], 1.0 / zeta) / horner(AIRY["AD"], 1.0 / zeta)
    high = ratio * torch.exp(-zeta) / (2.0 * sqrt(pi) * torch.sqrt(torch.sqrt(above)))
    inner = x.clamp(-2.09, 2.09)
    cube = inner * inner * inner
    f, g, first, second = 1.0, inner, 1.0, inner
    for k in range(1, 28, 3):
        first = first * cube / ((k + 1) * (k + 2))
        second = second * cube / ((k + 2) * (k + 3))
        f, g = f + first, g + second
    near = 0.355028053887817239260 * f - 0.258819403792806798405 * g
    found = torch.where(x < -2.09, low, torch.where(x >= 2.09, high, near))
    # Restores NaN, which a clamp on both sides maps to a bound (docs/numbers.md).
    return torch.where(torch.isfinite(x), found, nan)


# Error functions


def _erfcx(x: Tensor) -> Tensor:
    """e^(x^2) erfc(x): a series in (x - 3.75) / (x + 3.75), reflected below 0."""
    size = x.abs()
    t = torch.where(torch.isinf(size), 1.0, (size - 3.75) / (size + 3.75))
    found = chebyshev(SCALED_ERFC["SERIES"], 2.0 * t) / (1.0 + 2.0 * size)
    return torch.where(x < 0, 2.0 * torch.exp(x * x) - found, found)


def _log_ndtr(x: Tensor) -> Tensor:
    """Logarithm of the normal distribution function."""
    t = x / sqrt(2)
    low = torch.log(_erfcx(-t) * 0.5) - t * t
    high = torch.log1p(-torch.erfc(t) * 0.5)
    return torch.where(x < -1.0, low, high)


def _ndtri(y: Tensor) -> Tensor:
    """Inverse of the normal distribution function."""
    tail = 0.13533528323661269189
    upper = y > 1 - tail
    part = torch.where(upper, 1 - y, y)
    offset = part - 0.5
    square = offset * offset
    table = NORMAL_QUANTILE
    ratio = square * horner(table["P0"], square) / horner(table["Q0"], square)
    central = (offset + offset * ratio) * sqrt(2 * pi)
    x = torch.sqrt(-2.0 * torch.log(part))
    z = 1 / x
    near = z * horner(table["P1"], z) / horner(table["Q1"], z)
    far = z * horner(table["P2"], z) / horner(table["Q2"], z)
    end = x - torch.log(x) / x - torch.where(x < 8.0, near, far)
    found = torch.where(part > tail, central, torch.where(upper, end, -end))
    found = torch.where((y < 0) | (y > 1), nan, found)
    return torch.where(y == 0, -inf, torch.where(y == 1, inf, found))


# Gamma functions

_GAMMA_TERMS = 128


def _lower_gamma(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Regularized incomplete gamma functions P and Q.

    A series for small x, else a continued fraction by Lentz's method.
    """
    scale = torch.exp(a * torch.log(x) - x - torch.lgamma(a))
    term = total = torch.ones_like(a)
    for k in range(1, _GAMMA_TERMS):
        term = term * x / (a + k)
        total = total + term
    series = total * scale / a
    b = x + 1 - a
    c = torch.full_like(x, 1e30)
    d = 1 / torch.where(b.abs() < 1e-30, 1e-30, b)
    h = d
    for k in range(1, _GAMMA_TERMS // 2):
        factor = k * (a - k)
        b = b + 2
        d = factor * d + b
        d = 1 / torch.where(d.abs() < 1e-30, 1e-30, d)
        c = b + factor / c
        c = torch.where(c.abs() < 1e-30, 1e-30, c)
        h = h * d * c
    fraction = h * scale
    small = x < a + 1
    return torch.where(small, series, 1 - fraction), torch.where(small, 1 - series, fraction)


def _incomplete_gamma(upper: bool) -> Decomposition:
    def function(a: Tensor, x: Tensor) -> Tensor:
        a, x = torch.broadcast_tensors(a, x)
        found = _lower_gamma(a, x)[int(upper)]
        start, end = (1.0, 0.0) if upper else (0.0, 1.0)
        found = torch.where(torch.isinf(x) & ~torch.isinf(a), end, found)
        found = torch.where(torch.isinf(a), start, found)
        found = torch.where((x == 0) & (a > 0), start, found)
        found = torch.where(a == 0, end, found)
        both = torch.isinf(a) & torch.isinf(x)
        none = (a == 0) & (x == 0)
        return torch.where((x < 0) | (a < 0) | both | none, nan, found)

    return function


def _multivariate_log_gamma(x: Tensor, p: int) -> Tensor:
    total = p * (p - 1) / 4 * log(pi)
    for k in range(p):
        total = total + torch.lgamma(x - k / 2)
    return total


DECOMPOSITIONS: Decompositions = {
    **{
        f"special_{name}": in_float32(function)
        for name, function in {
            "bessel_j0": _bessel_j0,
            "bessel_j1": _bessel_j1,
            "bessel_y0": _bessel_y0,
            "bessel_y1": _bessel_y1,
            "modified_bessel_i0": _bessel_i0,
            "modified_bessel_i1": _bessel_i1,
            "modified_bessel_k0": _modified_k(0, scaled=False),
            "modified_bessel_k1": _modified_k(1, scaled=False),
            "scaled_modified_bessel_k0": _modified_k(0, scaled=True),
            "scaled_modified_bessel_k1": _modified_k(1, scaled=True),
            "spherical_bessel_j0": _spherical_bessel_j0,
            "airy_ai": _airy_ai,
            "i0e": _scaled_i0,
            "i1": _bessel_i1,
            "i1e": _scaled_i1,
            "erfcx": _erfcx,
            "log_ndtr": _log_ndtr,
            "ndtri": _ndtri,
        }.items()
    },
    "i0": in_float32(_bessel_i0),
    "igamma": in_float32(_incomplete_gamma(upper=False)),
    "igammac": in_float32(_incomplete_gamma(upper=True)),
    "mvlgamma": in_float32(_multivariate_log_gamma),
}
