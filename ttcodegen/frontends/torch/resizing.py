"""Images in another size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, shape_of, tensor_type
from ttcodegen.frontends.torch.graph import Graph, Rule, kind_of, limits

_CUBIC = -0.75
"""The slope of PyTorch's cubic kernel (R. Keys, 1981)."""
_SMOOTH_CUBIC = -0.5
"""The same where images become smaller without aliases, as in Pillow."""


def _nearest(graph: Graph, x: SSAValue, _: Any = None, *factors: Any) -> SSAValue:
    return _resized(graph, x, "nearest", False, factors)


def _interpolated(mode: str) -> Rule:
    def rule(
        graph: Graph, x: SSAValue, _: Any = None, align_corners: bool = False, *factors: Any
    ) -> SSAValue:
        return _resized(graph, x, mode, align_corners, factors)

    return rule


def _resized(
    graph: Graph, x: SSAValue, mode: str, align_corners: bool, factors: Sequence[Any]
) -> SSAValue:
    """The op for whole factors; else rows and columns are sums of those of the image, which a
    product with a matrix of weights is."""
    batch, channels, *sizes = graph.shape
    found = shape_of(x.type)[2:]
    given = _given_factors(factors)
    # A size is rounded down, and positions in the image still follow the factor that was given.
    whole = (kind_of(graph.element) == "f" or mode == "nearest") and all(
        size % old == 0 and factor in (None, size // old)
        for size, old, factor in zip(sizes, found, given, strict=True)
    )
    if whole and not align_corners and mode != "bicubic":
        result = graph.emit(
            "upsample2d",
            [graph.permute(x, [0, 2, 3, 1])],
            tensor_type(graph.element, [batch, *sizes, channels]),
            scale_factor=[size // old for size, old in zip(sizes, found, strict=True)],
            mode=mode,
        )
        return graph.permute(result, [0, 3, 1, 2])
    for axis in (1, 0):
        weights = resizing_weights(mode, found[axis], sizes[axis], align_corners, given[axis])
        x = _weighted(graph, x, axis + 2, weights)
    return x


def _weighted(graph: Graph, x: SSAValue, axis: int, weights: np.ndarray) -> SSAValue:
    is_float = kind_of(element_of(x.type)) == "f"
    return (weighted_along if is_float else _weighted_bytes)(graph, x, axis, weights)


def _weighted_bytes(graph: Graph, x: SSAValue, axis: int, weights: np.ndarray) -> SSAValue:
    """Sums of integers along one dimension, rounded and as much as the type can hold: the weights
    are fractions of 16 bits, as PyTorch takes them for images of bytes."""
    most = weights.max()
    digits = next(n for n in range(23) if n == 22 or int(0.5 + most * 2 ** (n + 1)) >= 1 << 15)
    numbers = np.trunc(weights * 2.0**digits + np.copysign(0.5, weights))
    whole = element_of(x.type)
    image = graph.typecast(x, f32)
    # Halves of eight bits each, which products of the matrix engine keep.
    lower = numbers % 256
    parts = [
        weighted_along(graph, image, axis, part / 2.0**digits) for part in (numbers - lower, lower)
    ]
    found = graph.like("add", *parts)
    found = graph.like("floor", graph.like("add", found, graph.number(0.5, found)))
    low, high = limits(whole)
    found = graph.like("clamp_scalar", found, min=float(low), max=float(high))
    return graph.typecast(found, whole)


def _given_factors(factors: Sequence[Any]) -> tuple[float | None, float | None]:
    """Those of rows and columns: one overload lists them, the other one has two arguments."""
    if len(factors) == 1 and not isinstance(factors[0], float):
        factors = factors[0] or ()
    rows, columns, *_ = (*factors, None, None)
    return rows, columns


def weighted_along(graph: Graph, x: SSAValue, axis: int, weights: np.ndarray) -> SSAValue:
    """Sums of the elements of one dimension, by a matrix of weights [size, new size]."""
    last = len(shape_of(x.type)) - 1
    if axis != last:
        turned = weighted_along(graph, graph.swapped(x, axis, last), last, weights)
        return graph.swapped(turned, axis, last)
    element = element_of(x.type)
    result = tensor_type(element, [*shape_of(x.type)[:-1], weights.shape[1]])
    return graph.emit("matmul", [x, graph.constant(weights, element)], result)


def resizing_weights(
    mode: str, size: int, wanted: int, align_corners: bool, factor: float | None = None
) -> np.ndarray:
    """Interpolation matrix [size, wanted] of PyTorch's `interpolate`."""
    places = np.arange(wanted)
    if align_corners:
        step = (size - 1) / (wanted - 1) if wanted > 1 else 0.0
        at = places * step
    else:
        step = 1 / factor if factor else size / wanted
        at = places * step if mode == "nearest" else (places + 0.5) * step - 0.5
    if mode != "bicubic":
        at = np.maximum(at, 0)
    first = np.minimum(np.floor(at), size - 1 if mode != "bicubic" else np.inf).astype(int)
    part = at - first
    taps = {
        "nearest": [(0, np.ones(wanted))],
        "bilinear": [(0, 1 - part), (1, part)],
        "bicubic": [(tap, _cubic(np.abs(part - tap))) for tap in (-1, 0, 1, 2)],
    }[mode]
    weights = np.zeros((size, wanted))
    for tap, share in taps:
        np.add.at(weights, (np.clip(first + tap, 0, size - 1), places), share)
    return weights


def _smoothed(mode: str) -> Rule:
    """Resizing whose kernel grows with the factor when images become smaller."""

    def rule(
        graph: Graph, x: SSAValue, _: Any = None, align_corners: bool = False, *factors: Any
    ) -> SSAValue:
        given = _given_factors(factors)
        for axis in (1, 0):
            size, wanted = shape_of(x.type)[axis + 2], graph.shape[axis + 2]
            step = 1 / (given[axis] or wanted / size)
            if align_corners:
                step = (size - 1) / (wanted - 1) if wanted > 1 else 0.0
            x = _weighted(graph, x, axis + 2, _smoothing_weights(mode, size, wanted, step))
        return x

    return rule


def _smoothing_weights(mode: str, size: int, wanted: int, step: float) -> np.ndarray:
    """Antialiasing interpolation matrix [size, wanted]."""
    width = max(step, 1.0)
    reach = width * (2 if mode == "bicubic" else 1)
    weights = np.zeros((size, wanted))
    for place in range(wanted):
        centre = step * (place + 0.5)
        begin, end = max(int(centre - reach + 0.5), 0), min(int(centre + reach + 0.5), size)
        distance = np.abs(np.arange(begin, end) - centre + 0.5) / width
        shares = _cubic(distance, _SMOOTH_CUBIC) if mode == "bicubic" else 1 - distance
        shares = np.maximum(shares, 0) if mode != "bicubic" else shares
        weights[begin:end, place] = shares / shares.sum()
    return weights


def _cubic(distance: np.ndarray, slope: float = _CUBIC) -> np.ndarray:
    near = ((slope + 2) * distance - (slope + 3)) * distance**2 + 1
    far = slope * (((distance - 5) * distance + 8) * distance - 4)
    return np.where(distance <= 1, near, np.where(distance <= 2, far, 0))


RULES: dict[str, Rule] = {
    "upsample_nearest2d": _nearest,
    "upsample_bilinear2d": _interpolated("bilinear"),
    "upsample_bicubic2d": _interpolated("bicubic"),
    "_upsample_bilinear2d_aa": _smoothed("bilinear"),
    "_upsample_bicubic2d_aa": _smoothed("bicubic"),
}
"""Operations by their names, for all their overloads."""
