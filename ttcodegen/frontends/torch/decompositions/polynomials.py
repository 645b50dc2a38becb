"""Orthogonal polynomials."""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import Any

from ttcodegen.frontends.torch.decompositions.tracing import (
    Decomposition,
    Decompositions,
    Tensor,
    in_float32,
    torch,
)

# Orthogonal polynomials, of a degree that is a number or a tensor.

_HIGHEST_DEGREE = 32
"""Limit on tensor-valued degrees; beyond it the result is NaN."""
_HIGHEST_NUMBER = 128
"""Limit on constant degrees, as torch's own for Hermite polynomials of float32."""

Next = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""Three-term recurrence: P(k + 1) from k, x, P(k) and P(k - 1)."""


def _recurrence(first: Callable[[Tensor], Tensor], following: Next, highest: int) -> Any:
    """Makes the polynomial of degree n of a recurrence that starts with 1 and `first`."""

    def polynomial(x: Tensor, n: Any) -> Tensor:
        before, last = torch.ones_like(x), first(x)
        if not isinstance(n, torch.Tensor):
            degree = int(n)
            if degree > _HIGHEST_NUMBER:
                return torch.full_like(x, nan)
            for k in range(1, degree):
                before, last = last, following(k, x, last, before)
            return torch.zeros_like(x) if degree < 0 else (before if degree == 0 else last)
        n = torch.trunc(n)
        found = torch.where(n < 0, 0.0, torch.where(n == 0, before, last))
        for k in range(1, highest):
            before, last = last, following(k, x, last, before)
            found = torch.where(n == k + 1, last, found)
        return torch.where(n > highest, nan, found)

    return polynomial


def _chebyshev_step(_: int, x: Tensor, last: Tensor, before: Tensor) -> Tensor:
    return (x + x) * last - before


_FIRST: dict[str, Callable[[Tensor], Tensor]] = {
    "t": lambda x: x,
    "u": lambda x: x + x,
    "v": lambda x: x + x - 1,
    "w": lambda x: x + x + 1,
}
"""First-degree polynomial of each Chebyshev kind."""


def _by_angles(kind: str, x: Tensor, n: Tensor) -> Tensor:
    """Chebyshev polynomial on [-1, 1] by trigonometric form, with its limits at the ends."""
    angle = torch.acos(x)
    if kind == "t":
        return torch.cos(n * angle)
    odd = torch.where(torch.remainder(n, 2) == 0, 1.0, -1.0)
    if kind == "u":
        found = torch.sin((n + 1) * angle) / torch.sin(angle)
        ends = (n + 1, odd * (n + 1))
    elif kind == "v":
        found = torch.cos((n + 0.5) * angle) / torch.cos(angle * 0.5)
        ends = (torch.ones_like(n), odd * (n + n + 1))
    else:
        found = torch.sin((n + 0.5) * angle) / torch.sin(angle * 0.5)
        ends = (n + n + 1, odd)
    return torch.where(x == 1, ends[0], torch.where(x == -1, ends[1], found))


def _chebyshev(kind: str) -> Decomposition:
    """Chebyshev polynomial: recurrence for low degrees and outside of [-1, 1], else
    trigonometric."""
    recurrence = _recurrence(_FIRST[kind], _chebyshev_step, _HIGHEST_DEGREE)

    def polynomial(x: Any, n: Any) -> Tensor:
        x, n = _tensors(x, n)
        inside = x.abs() <= 1
        found = recurrence(x, n)
        degree = (
            torch.trunc(n) if isinstance(n, torch.Tensor) else torch.full_like(x, float(int(n)))
        )
        x, degree, inside = torch.broadcast_tensors(x, degree, inside)
        return torch.where(inside & (degree > 6), _by_angles(kind, x, degree), found)

    return polynomial


def _tensors(x: Any, n: Any) -> tuple[Tensor, Any]:
    if not isinstance(x, torch.Tensor):
        return torch.full_like(n, float(x)), n
    if isinstance(n, torch.Tensor):
        return tuple(torch.broadcast_tensors(x, n))
    return x, n


def _shifted(polynomial: Decomposition) -> Decomposition:
    def shifted(x: Any, n: Any) -> Tensor:
        return polynomial(x + x - 1, n)

    return shifted


def _of_any(polynomial: Any) -> Decomposition:
    def taken(x: Any, n: Any) -> Tensor:
        return polynomial(*_tensors(x, n))

    return taken


def _hermite_h(k: int, x: Tensor, last: Tensor, before: Tensor) -> Tensor:
    return (x + x) * last - (2 * k) * before


def _hermite_he(k: int, x: Tensor, last: Tensor, before: Tensor) -> Tensor:
    return x * last - k * before


def _laguerre(k: int, x: Tensor, last: Tensor, before: Tensor) -> Tensor:
    return ((2 * k + 1 - x) * last - k * before) / (k + 1)


def _legendre(k: int, x: Tensor, last: Tensor, before: Tensor) -> Tensor:
    return ((2 * k + 1) * x * last - k * before) / (k + 1)


_POLYNOMIALS: dict[str, Decomposition] = {
    **{f"chebyshev_polynomial_{kind}": _chebyshev(kind) for kind in _FIRST},
    **{f"shifted_chebyshev_polynomial_{kind}": _shifted(_chebyshev(kind)) for kind in _FIRST},
    "hermite_polynomial_h": _of_any(_recurrence(lambda x: x + x, _hermite_h, _HIGHEST_DEGREE)),
    "hermite_polynomial_he": _of_any(_recurrence(lambda x: x, _hermite_he, _HIGHEST_DEGREE)),
    "laguerre_polynomial_l": _of_any(_recurrence(lambda x: 1 - x, _laguerre, _HIGHEST_DEGREE)),
    "legendre_polynomial_p": _of_any(_recurrence(lambda x: x, _legendre, _HIGHEST_DEGREE)),
}

DECOMPOSITIONS: Decompositions = {
    f"special_{name}": in_float32(polynomial) for name, polynomial in _POLYNOMIALS.items()
}


# Coefficients of rational functions and series of Chebyshev that special functions are computed
# by: those of S. Moshier, Cephes Mathematical Library, series cut off where float32 ends; those
# of erfcx fit (1 + 2x) erfcx(x) in (x - 3.75) / (x + 3.75), as M. Shepherd and J. Laframboise
# (1981) do.

BESSEL_J0: dict[str, tuple[float, ...]] = {
    "PP": (
        0.0007969367293, 0.08283523921, 1.239533716, 5.447250031, 8.747165002, 5.303240382, 1,
    ),
    "PQ": (
        0.0009244088106, 0.08562884744, 1.253527439, 5.470977403, 8.761908832, 5.306052882, 1,
    ),
    "QP": (
        -0.01136638389, -1.282527187, -19.55395443, -93.20601521, -177.681168, -147.0775052,
        -51.41053268, -6.050143506,
    ),
    "QQ": (
        64.31782561, 856.430026, 3882.401836, 7240.467742, 5930.727012, 2062.093317, 242.0057402,
    ),
    "RP": (
        -4794432210, 1.956174919e+12, -2.492483444e+14, 9.70862251e+15,
    ),
    "RQ": (
        499.5631472, 173785.4017, 48440965.83, 1.11855537e+10, 2.112775201e+12, 3.105182299e+14,
        3.181219559e+16, 1.710862941e+18,
    ),
}  # fmt: skip
BESSEL_J1: dict[str, tuple[float, ...]] = {
    "PP": (
        0.0007621256162, 0.07313970569, 1.127196081, 5.112079511, 8.424045901, 5.214515987, 1,
    ),
    "PQ": (
        0.0005713231281, 0.06884559088, 1.105142326, 5.073863861, 8.399855543, 5.209828487, 1,
    ),
    "QP": (
        0.05108625948, 4.98213873, 75.82382841, 366.7796094, 710.856305, 597.4896124, 211.6887571,
        25.20702059,
    ),
    "QQ": (
        74.2373277, 1056.44886, 4986.410583, 9562.318924, 7997.041604, 2826.192785, 336.0936078,
    ),
    "RP": (
        -899971225.7, 4.52228298e+11, -7.274942452e+13, 3.682957329e+15,
    ),
    "RQ": (
        620.8364781, 256987.2568, 83514679.14, 2.215115955e+10, 4.749141221e+12, 7.843696079e+14,
        8.952223362e+16, 5.322786203e+18,
    ),
}  # fmt: skip
BESSEL_Y0: dict[str, tuple[float, ...]] = {
    "PP": (
        0.0007969367293, 0.08283523921, 1.239533716, 5.447250031, 8.747165002, 5.303240382, 1,
    ),
    "PQ": (
        0.0009244088106, 0.08562884744, 1.253527439, 5.470977403, 8.761908832, 5.306052882, 1,
    ),
    "QP": (
        -0.01136638389, -1.282527187, -19.55395443, -93.20601521, -177.681168, -147.0775052,
        -51.41053268, -6.050143506,
    ),
    "QQ": (
        64.31782561, 856.430026, 3882.401836, 7240.467742, 5930.727012, 2062.093317, 242.0057402,
    ),
    "YP": (
        15592.43679, -14663929.59, 5435264771, -9.821360657e+11, 8.759063944e+13,
        -3.466283034e+15, 4.427332686e+16, -1.849508004e+16,
    ),
    "YQ": (
        1041.283537, 626107.3301, 268919633.4, 8.640024871e+10, 2.029796128e+13, 3.171577528e+15,
        2.505962562e+17,
    ),
}  # fmt: skip
BESSEL_Y1: dict[str, tuple[float, ...]] = {
    "PP": (
        0.0007621256162, 0.07313970569, 1.127196081, 5.112079511, 8.424045901, 5.214515987, 1,
    ),
    "PQ": (
        0.0005713231281, 0.06884559088, 1.105142326, 5.073863861, 8.399855543, 5.209828487, 1,
    ),
    "QP": (
        0.05108625948, 4.98213873, 75.82382841, 366.7796094, 710.856305, 597.4896124, 211.6887571,
        25.20702059,
    ),
    "QQ": (
        74.2373277, 1056.44886, 4986.410583, 9562.318924, 7997.041604, 2826.192785, 336.0936078,
    ),
    "YP": (
        1263204748, -6.473558764e+11, 1.145095115e+14, -8.127702555e+15, 2.024394757e+17,
        -7.788771963e+17,
    ),
    "YQ": (
        594.3015923, 235564.0929, 73481194.45, 1.876013161e+10, 3.882312775e+12, 6.205577271e+14,
        6.871410874e+16, 3.972706081e+18,
    ),
}  # fmt: skip
BESSEL_I0: dict[str, tuple[float, ...]] = {
    "A": (
        9.675809035e-11, -5.189795602e-10, 2.659823725e-09, -1.30002501e-08, 6.046995023e-08,
        -2.670793854e-07, 1.117387539e-06, -4.416738358e-06, 1.644844807e-05, -5.75419501e-05,
        0.0001885028851, -0.0005763755745, 0.001639475617, -0.004324309995, 0.01054646039,
        -0.02373741481, 0.04930528424, -0.09490109705, 0.1716209015, -0.3046826723, 0.6767952744,
    ),
    "B": (
        4.940602388e-10, 3.396232026e-09, 2.26666899e-08, 2.048918589e-07, 2.891370521e-06,
        6.889758347e-05, 0.003369116478, 0.804490411,
    ),
}  # fmt: skip
BESSEL_I1: dict[str, tuple[float, ...]] = {
    "A": (
        -6.663489724e-11, 3.625590282e-10, -1.887249752e-09, 9.381537386e-09, -4.445059129e-08,
        2.003294754e-07, -8.568720265e-07, 3.470251308e-06, -1.327316366e-05, 4.781565108e-05,
        -0.0001617608158, 0.0005122859562, -0.001513572451, 0.004156422944, -0.01056408489,
        0.02472644903, -0.05294598121, 0.1026436587, -0.1764165184, 0.2525871864,
    ),
    "B": (
        -5.589743462e-10, -3.835380386e-09, -2.631468847e-08, -2.512236238e-07, -3.882564809e-06,
        -0.0001105889388, -0.009761097491, 0.778576235,
    ),
}  # fmt: skip
BESSEL_K0: dict[str, tuple[float, ...]] = {
    "A": (
        1.904516377e-09, 2.534791079e-07, 2.286212103e-05, 0.001264615411, 0.03597993652,
        0.3442898999, -0.5353273932,
    ),
    "B": (
        3.577397281e-10, -1.697534509e-09, 8.574034017e-09, -4.660489898e-08, 2.766813639e-07,
        -1.831755523e-06, 1.394981372e-05, -0.0001284954958, 0.001569883886, -0.03144810131,
        2.440303082,
    ),
}  # fmt: skip
BESSEL_K1: dict[str, tuple[float, ...]] = {
    "A": (
        -2.213387631e-08, -2.433406142e-06, -0.0001730288958, -0.00697572386, -0.1226111808,
        -0.3531559608, 1.525300227,
    ),
    "B": (
        -4.190354759e-10, 2.015049755e-09, -1.034576247e-08, 5.741084125e-08, -3.501960603e-07,
        2.406484948e-06, -1.936197974e-05, 0.0001952155185, -0.00285781686, 0.1039237366,
        2.72062619,
    ),
}  # fmt: skip
AIRY: dict[str, tuple[float, ...]] = {
    "AN": (
        0.3465381015, 12.00759527, 76.27960536, 168.0892249, 159.7563914, 70.53609068,
        14.02646912, 1,
    ),
    "AD": (
        0.5675945326, 14.75625626, 84.51389701, 177.3180881, 164.2346929, 71.47784008,
        14.09591356, 1,
    ),
    "AFN": (
        -0.1316963234, -0.6264565444, -0.693158036, -0.2797799815, -0.04919001326,
        -0.004062659236, -0.0001592764962, -2.776491082e-06, -1.677876985e-08,
    ),
    "AFD": (
        13.35604207, 32.68250328, 26.73670409, 9.187074029, 1.475291468, 0.1156871738,
        0.004402916416, 7.547203483e-05, 4.51850093e-07,
    ),
    "AGN": (
        0.01973399321, 0.3911030296, 1.065798976, 0.9391692298, 0.3514656561, 0.06338889196,
        0.00585804113, 0.0002828516008, 6.9879367e-06, 8.117892396e-08, 3.415517848e-10,
    ),
    "AGD": (
        9.308929081, 19.83529287, 15.56466289, 5.476860694, 0.9542936116, 0.08645808264,
        0.004126565238, 0.0001012590851, 1.171667332e-06, 4.918345701e-09,
    ),
}  # fmt: skip
NORMAL_QUANTILE: dict[str, tuple[float, ...]] = {
    "P0": (
        -59.9633501, 98.00107542, -56.67628575, 13.93126094, -1.239165839,
    ),
    "Q0": (
        1, 1.954488583, 4.676279129, 86.36024214, -225.4626879, 200.2602124, -82.03722562,
        15.90562251, -1.183316211,
    ),
    "P1": (
        4.055448923, 31.52510946, 57.16281922, 44.08050739, 14.68495619, 2.186633069,
        -0.1402560792, -0.03504246268, -0.0008574567852,
    ),
    "Q1": (
        1, 15.77998833, 45.39076351, 41.31720383, 15.04253857, 2.504649462, -0.1421829229,
        -0.03808064077, -0.0009332594809,
    ),
    "P2": (
        3.237748918, 6.915228891, 3.938810253, 1.333034608, 0.2014853895, 0.01237166348,
        0.0003015815535, 2.658069747e-06, 6.239745392e-09,
    ),
    "Q2": (
        1, 6.024270394, 3.679835639, 1.377020995, 0.2162369936, 0.01342040061, 0.0003280144647,
        2.892478647e-06, 6.79019408e-09,
    ),
}  # fmt: skip
SCALED_ERFC: dict[str, tuple[float, ...]] = {
    "SERIES": (
        2.868797194e-11, -6.31808739e-11, -7.754400148e-10, 4.521959812e-09, 1.076499951e-08,
        -2.188640105e-07, 7.740383066e-07, 4.139027986e-06, -6.916973302e-05, 0.0004907758365,
        -0.00241316354, 0.009074997671, -0.02665866844, 0.05920994, -0.08424913337,
        -0.004590054581, 2.355157869,
    ),
}  # fmt: skip
