"""Pooling, resizing and grid sampling of images."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, i1, shape_of, tensor_type
from ttcodegen.frontends.torch.graph import Graph, Rule, kind_of, limits, unsupported_argument
from ttcodegen.frontends.torch.layers import channels_first, channels_last, each_of, emit_on_images

# Images in another size.

_CUBIC = -0.75
"""Coefficient of PyTorch's cubic kernel (R. Keys, 1981)."""
_SMOOTH_CUBIC = -0.5
"""Coefficient of the antialiasing cubic kernel, as in Pillow."""


def _nearest(graph: Graph, x: SSAValue, _: Any = None, *factors: Any) -> SSAValue:
    return _resize(graph, x, "nearest", False, factors)


def _interpolated(mode: str) -> Rule:
    def rule(
        graph: Graph, x: SSAValue, _: Any = None, align_corners: bool = False, *factors: Any
    ) -> SSAValue:
        return _resize(graph, x, mode, align_corners, factors)

    return rule


def _resize(
    graph: Graph, x: SSAValue, mode: str, align_corners: bool, factors: Sequence[Any]
) -> SSAValue:
    """Resizes by upsample2d for whole factors, else by matmuls with interpolation matrices."""
    batch, channels, *sizes = graph.shape
    found = shape_of(x.type)[2:]
    given = _scale_factors(factors)
    # Sizes are rounded down, but sampling positions follow the given factor.
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
    """Interpolates integers along one dimension with rounding and saturation.

    Weights are 16-bit fractions, as in PyTorch for byte images.
    """
    most = weights.max()
    digits = next(n for n in range(23) if n == 22 or int(0.5 + most * 2 ** (n + 1)) >= 1 << 15)
    numbers = np.trunc(weights * 2.0**digits + np.copysign(0.5, weights))
    whole = element_of(x.type)
    image = graph.typecast(x, f32)
    # Split into 8-bit halves, whose products are exact on the matrix engine.
    lower = numbers % 256
    parts = [
        weighted_along(graph, image, axis, part / 2.0**digits) for part in (numbers - lower, lower)
    ]
    found = graph.like("add", *parts)
    found = graph.like("floor", graph.like("add", found, graph.number(0.5, found)))
    low, high = limits(whole)
    found = graph.like("clamp_scalar", found, min=float(low), max=float(high))
    return graph.typecast(found, whole)


def _scale_factors(factors: Sequence[Any]) -> tuple[float | None, float | None]:
    """Row and column factors from either overload: one list, or two arguments."""
    if len(factors) == 1 and not isinstance(factors[0], float):
        factors = factors[0] or ()
    rows, columns, *_ = (*factors, None, None)
    return rows, columns


def weighted_along(graph: Graph, x: SSAValue, axis: int, weights: np.ndarray) -> SSAValue:
    """Multiplies one dimension by a matrix of weights [size, new size]."""
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


def _antialiased(mode: str) -> Rule:
    """Makes the rule of antialiased resizing, whose kernel widens with the reduction factor."""

    def rule(
        graph: Graph, x: SSAValue, _: Any = None, align_corners: bool = False, *factors: Any
    ) -> SSAValue:
        given = _scale_factors(factors)
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


RESIZING_RULES: dict[str, Rule] = {
    "upsample_nearest2d": _nearest,
    "upsample_bilinear2d": _interpolated("bilinear"),
    "upsample_bicubic2d": _interpolated("bicubic"),
    "_upsample_bilinear2d_aa": _antialiased("bilinear"),
    "_upsample_bicubic2d_aa": _antialiased("bicubic"),
}
"""Rules by operation name, for all overloads."""


# Pooling, over one, two or three dimensions, and to sizes that are given.


def _pooled(graph: Graph, name: str, x: SSAValue, spatial: int, **attributes: Any) -> SSAValue:
    """Pooling over the last dimensions; 1-D signals are images of one row."""
    return emit_on_images(graph, name, x, spatial, one_row=spatial == 1, **attributes)


def _pool_window(
    spatial: int, kernel: Any, stride: Any, padding: Any, dilation: Any = 1
) -> dict[str, Any]:
    kernel = each_of(kernel, spatial)
    stride = each_of(stride, spatial) if stride not in (None, []) else kernel
    padding, dilation = each_of(padding, spatial), each_of(dilation, spatial)
    if spatial == 1:
        kernel, stride, padding, dilation = (
            [1, *kernel],
            [1, *stride],
            [0, *padding],
            [1, *dilation],
        )
    return {"kernel": kernel, "stride": stride, "padding": [*padding, *padding],
            "dilation": dilation}  # fmt: skip


def _limit_window(x: SSAValue, window: dict[str, Any]) -> dict[str, Any]:
    """Limits the window to the padded image, as ceil mode may exceed it."""
    sizes = [1, *shape_of(x.type)][-len(window["kernel"]) :]
    rows = zip(window["kernel"], sizes, window["padding"], window["dilation"], strict=False)
    fitting = [min(k, (size + 2 * pad - 1) // step + 1) for k, size, pad, step in rows]
    return window | {"kernel": fitting}


def _max_pool(spatial: int) -> Rule:
    def rule(
        graph: Graph,
        x: SSAValue,
        kernel: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> SSAValue:
        pool = _pooled_in_space if spatial == 3 else _pooled
        window = _pool_window(spatial, kernel, stride, padding, dilation)
        window = _limit_window(x, window) if ceil_mode else window
        return pool(graph, "max_pool2d", x, spatial, ceil_mode=ceil_mode, **window)

    return rule


def _avg_pool(spatial: int) -> Rule:
    def rule(
        graph: Graph,
        x: SSAValue,
        kernel: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> SSAValue:
        if kind_of(graph.element) != "f":
            window = _pool_window(spatial, kernel, stride, padding)
            return _whole_means(graph, x, spatial, window, ceil_mode, count_include_pad,
                                divisor_override)  # fmt: skip
        pool = _pooled_in_space if spatial == 3 else _pooled
        window = _pool_window(spatial, kernel, stride, padding)
        if divisor_override is not None and ceil_mode:
            # Sums of whole windows, those at the end with zeros.
            x = _padded_to_windows(graph, x, spatial, window)
            window = _pool_window(spatial, kernel, stride, 0)
            ceil_mode = False
        window = _limit_window(x, window) if ceil_mode else window
        averaged = pool(
            graph, "avg_pool2d", x, spatial, ceil_mode=ceil_mode,
            count_include_pad=count_include_pad or divisor_override is not None, **window,
        )  # fmt: skip
        if divisor_override is None:
            return averaged
        factor = graph.number(prod(window["kernel"]) / divisor_override, averaged)
        return graph.broadcasting("multiply", averaged, factor)

    return rule


def _padded_to_windows(graph: Graph, x: SSAValue, spatial: int, window: dict[str, Any]) -> SSAValue:
    """Zero-pads an image to the extent of the result's windows."""
    kernel, stride = (list(window[key])[-spatial:] for key in ("kernel", "stride"))
    padding = window["padding"][: len(window["padding"]) // 2][-spatial:]
    widths = [(0, 0)] * (len(shape_of(x.type)) - spatial)
    sizes = zip(shape_of(x.type)[-spatial:], graph.shape[-spatial:], strict=True)
    for (size, made), k, step, before in zip(sizes, kernel, stride, padding, strict=True):
        reach = (made - 1) * step + k
        widths.append((before, max(reach - before - size, 0)))
    return graph.pad(x, widths, 0)


def _whole_means(
    graph: Graph,
    x: SSAValue,
    spatial: int,
    window: dict[str, Any],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> SSAValue:
    """Average pooling of integers: exact window sums, truncating division."""
    kernel, stride, padding = (list(window[key]) for key in ("kernel", "stride", "padding"))
    kernel, stride = kernel[-spatial:], stride[-spatial:]
    padding = padding[: len(padding) // 2][-spatial:]
    if prod(kernel) > _MAX_INTEGER_WINDOW:
        raise unsupported_argument("a pool of integers", "kernel_size", kernel)
    sizes, made = shape_of(x.type)[-spatial:], graph.shape[-spatial:]
    lead = len(shape_of(x.type)) - spatial
    counts = np.ones([1] * lead + [1] * spatial)
    for axis in range(spatial):
        begins = np.arange(made[axis]) * stride[axis] - padding[axis]
        limit = sizes[axis] + padding[axis]
        ends = np.minimum(begins + kernel[axis], limit)
        if not count_include_pad:
            begins, ends = np.maximum(begins, 0), np.minimum(ends, sizes[axis])
        shape = [1] * (lead + spatial)
        shape[lead + axis] = -1
        counts = counts * (ends - begins).reshape(shape)
    wide = _padded_to_windows(graph, graph.typecast(x, i32), spatial, window)
    total: SSAValue | None = None
    for place in np.ndindex(*kernel):
        part = wide
        for axis, (at, step, count) in enumerate(zip(place, stride, made, strict=True)):
            part = graph.part(part, lead + axis, at, at + (count - 1) * step + 1, step)
        total = part if total is None else graph.like("add", total, part)
    assert total is not None
    share = counts if divisor is None else np.full_like(counts, divisor)
    # Nudge upwards: an exact quotient may come out just below its integer.
    sums = graph.typecast(total, f32)
    quotient = graph.broadcasting("div", sums, graph.constant(share, f32))
    slack = graph.broadcasting("multiply", quotient, graph.number(1 + 2.0**-20, quotient))
    return graph.typecast(graph.like("trunc", slack), graph.element)


_MAX_INTEGER_WINDOW = 512
"""Limit on the elements of an integer window, each of which is an addition."""


def _pooled_in_space(
    graph: Graph, name: str, x: SSAValue, _: int, *, ceil_mode: bool, **window: Any
) -> SSAValue:
    """3-D pooling: a 2-D pool of each layer, then a pool over the layers."""
    *outer, depth, height, width = shape_of(x.type)
    rest = {k: v for k, v in window.items() if k == "count_include_pad"} | {"ceil_mode": ceil_mode}
    of_layers, of_images = ({**rest} for _ in range(2))
    for key in ("kernel", "stride", "dilation"):
        first, *others = window[key]
        of_layers[key], of_images[key] = [first, 1], others
    first, *others = window["padding"][:3]
    of_layers["padding"], of_images["padding"] = [first, 0] * 2, others * 2
    sizes = graph.shape[-3:]
    images = graph.reshape(x, [1, prod(outer) * depth, height, width])
    images = _pool_of(graph, name, images, sizes[1:], **of_images)
    layers = graph.reshape(images, [1, prod(outer), depth, sizes[1] * sizes[2]])
    layers = _pool_of(graph, name, layers, [sizes[0], sizes[1] * sizes[2]], **of_layers)
    return graph.reshape(layers, graph.shape)


def _pool_of(
    graph: Graph, name: str, images: SSAValue, sizes: Sequence[int], **attributes: Any
) -> SSAValue:
    """Pools the last two of four dimensions to the given sizes."""
    batch, channels = shape_of(images.type)[:2]
    result = tensor_type(graph.element, [batch, *sizes, channels])
    return channels_first(graph, graph.emit(name, [channels_last(graph, images)], result,
                                            **attributes))  # fmt: skip


def _adaptive(name: str, spatial: int) -> Rule:
    """Makes the rule of adaptive pooling.

    Sizes that do not divide have overlapping windows, and each dimension is pooled separately.
    """

    def rule(graph: Graph, x: SSAValue, size: Any) -> SSAValue:
        found, wanted = shape_of(x.type)[-spatial:], graph.shape[-spatial:]
        rank = len(shape_of(x.type))
        if all(size == 1 for size in wanted):
            reduction = "max" if name == "max_pool2d" else "mean"
            return graph.reduce(reduction, x, list(range(rank - spatial, rank)))
        if spatial == 3 or any(a % b for a, b in zip(found, wanted, strict=True)):
            for axis in range(rank - spatial, rank):
                x = _pooled_along(graph, name, x, axis, graph.shape[axis])
            return x
        kernel = [a // b for a, b in zip(found, wanted, strict=True)]
        return _pooled(graph, name, x, spatial, **_pool_window(spatial, kernel, None, 0))

    return rule


def _pooled_along(graph: Graph, name: str, x: SSAValue, axis: int, wanted: int) -> SSAValue:
    """Adaptively pools one dimension with PyTorch's windows.

    Window i spans floor(i n / size) to ceil((i + 1) n / size).
    """
    size = shape_of(x.type)[axis]
    if wanted == size:
        return x
    windows = [(i * size // wanted, -(-(i + 1) * size // wanted)) for i in range(wanted)]
    if name == "max_pool2d":
        parts = [graph.reduce("max", graph.part(x, axis, *window), [axis]) for window in windows]
        return graph.concat(parts, axis)
    weights = np.zeros((size, wanted))
    for place, (begin, end) in enumerate(windows):
        weights[begin:end, place] = 1 / (end - begin)
    return weighted_along(graph, x, axis, weights)


def _without_indices(rule: Rule) -> Rule:
    """Drops a pool's index result, which is rarely used."""

    def wrapped(graph: Graph, *arguments: Any, **named: Any) -> list[SSAValue]:
        value = rule(graph, *arguments, **named)
        assert isinstance(value, SSAValue)
        return [value]

    return wrapped


POOLING_RULES: dict[str, Rule] = {
    **{f"max_pool{n}d": _max_pool(n) for n in (1, 2, 3)},
    **{f"max_pool{n}d_with_indices": _without_indices(_max_pool(n)) for n in (2, 3)},
    **{f"avg_pool{n}d": _avg_pool(n) for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": _adaptive("avg_pool2d", n) for n in (1, 2, 3)},
    **{f"_adaptive_avg_pool{n}d": _adaptive("avg_pool2d", n) for n in (2, 3)},
    **{f"adaptive_max_pool{n}d": _without_indices(_adaptive("max_pool2d", n)) for n in (1, 2, 3)},
}
"""Rules by operation name, for all overloads."""


# Images sampled at positions that a tensor holds.

_BILINEAR, _NEAREST, _BICUBIC = range(3)
_ZEROS, _BORDER, _REFLECTION = range(3)
_SLOPE = -0.75
"""Coefficient of torch's cubic interpolation."""

Tap = tuple[SSAValue, SSAValue | None]
"""Element index along one dimension and its weight; None for weight 1."""


def _grid_sampler(
    graph: Graph, x: SSAValue, grid: SSAValue, mode: int, padding: int, align_corners: bool
) -> SSAValue:
    """Samples an image or volume at the positions of a grid.

    The grid's last dimension holds coordinates from -1 to 1, the image's last dimension first.
    """
    sizes = shape_of(x.type)[2:]
    grid = graph.typecast(grid, f32)
    taps: list[list[Tap]] = []
    for axis, size in enumerate(sizes):
        place = len(sizes) - 1 - axis
        at = graph.part(grid, len(sizes) + 1, place, place + 1)
        at = graph.reshape(at, shape_of(grid.type)[:-1])
        at = _unnormalized(graph, at, size, align_corners)
        if mode != _BICUBIC and padding != _ZEROS:
            # Clamp the position before its neighbours are weighted.
            at = _clamp_or_reflect(graph, at, size, padding, align_corners)
        taps.append(_taps(graph, at, mode))
    image = graph.typecast(channels_last(graph, x), f32)
    total: SSAValue | None = None
    for corner in product(*taps):
        found = _weighted_sampling(graph, image, corner, padding, align_corners)
        total = found if total is None else graph.like("add", total, found)
    assert total is not None
    return graph.typecast(channels_first(graph, total), element_of(x.type))


def _unnormalized(graph: Graph, at: SSAValue, size: int, align_corners: bool) -> SSAValue:
    """Converts coordinates to element indices.

    -1 and 1 are the centres of the first and last element, or their outer edges.
    """
    scale = (size - 1) / 2 if align_corners else size / 2
    return _affine(graph, at, scale, (size - 1) / 2)


def _affine(graph: Graph, value: SSAValue, scale: float, offset: float) -> SSAValue:
    scaled = graph.like("multiply", value, graph.number(scale, value))
    return graph.like("add", scaled, graph.number(offset, value))


def _clamp_or_reflect(
    graph: Graph, at: SSAValue, size: int, padding: int, align_corners: bool
) -> SSAValue:
    """Clamps coordinates to the image, or reflects them at its border."""
    if padding == _REFLECTION:
        at = _reflect(graph, at, size, align_corners)
    return graph.like("clamp_scalar", at, min=0.0, max=float(size - 1))


def _reflect(graph: Graph, at: SSAValue, size: int, align_corners: bool) -> SSAValue:
    """Reflects coordinates as a triangle wave at the outer elements' centres or edges."""
    low, span = (0.0, float(size - 1)) if align_corners else (-0.5, float(size))
    if span == 0:
        return graph.like("multiply", at, graph.number(0.0, at))
    distance = graph.like("abs", _affine(graph, at, 1.0, -low))
    within = graph.like("remainder", distance, graph.number(2 * span, at))
    from_end = graph.like("abs", _affine(graph, within, 1.0, -span))
    return _affine(graph, from_end, -1.0, span + low)


def _taps(graph: Graph, at: SSAValue, mode: int) -> list[Tap]:
    """Elements along one dimension that contribute to a position."""
    if mode == _NEAREST:
        return [(graph.rounded(at), None)]
    first = graph.like("floor", at)
    part = graph.like("subtract", at, first)
    if mode == _BILINEAR:
        return [
            (first, _affine(graph, part, -1.0, 1.0)),
            (_affine(graph, first, 1.0, 1.0), part),
        ]
    distances = [
        _affine(graph, part, sign, offset)
        for sign, offset in ((1.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (-1.0, 2.0))
    ]
    weights = [
        _polynomial(graph, distance, near)
        for distance, near in zip(distances, (False, True, True, False), strict=True)
    ]
    places = [_affine(graph, first, 1.0, float(offset)) for offset in (-1, 0, 1, 2)]
    return list(zip(places, weights, strict=True))


def _polynomial(graph: Graph, distance: SSAValue, near: bool) -> SSAValue:
    """Weight of cubic interpolation at a distance below one, or between one and two."""
    factors = (_SLOPE + 2, -(_SLOPE + 3), 0.0, 1.0)
    if not near:
        factors = (_SLOPE, -5 * _SLOPE, 8 * _SLOPE, -4 * _SLOPE)
    result = _affine(graph, distance, factors[0], factors[1])
    for factor in factors[2:]:
        scaled = graph.like("multiply", result, distance)
        result = graph.like("add", scaled, graph.number(factor, distance))
    return result


def _weighted_sampling(
    graph: Graph, image: SSAValue, corner: Sequence[Tap], padding: int, align_corners: bool
) -> SSAValue:
    """Gathers one tap of each dimension, times the taps' weights; outside elements follow
    `padding`."""
    batch, *sizes, channels = shape_of(image.type)
    weights = [weight for _, weight in corner if weight is not None]
    kept = shape_of(corner[0][0].type)
    flat = graph.reshape(graph.constant(np.arange(batch), i32), [batch] + [1] * (len(kept) - 1))
    flat = graph.repeat(flat, kept)
    for (place, _), size in zip(corner, sizes, strict=True):
        if padding == _ZEROS:
            weights.append(_is_inside(graph, place, size))
        place = _clamp_or_reflect(graph, place, size, padding, align_corners)
        flat = graph.like("multiply", flat, graph.number(size, flat))
        flat = graph.like("add", flat, graph.typecast(place, i32))
    table = graph.reshape(image, [batch * prod(sizes), channels])
    indices = graph.reshape(flat, [prod(kept)])
    found = graph.emit("embedding", [indices, table], tensor_type(f32, [prod(kept), channels]))
    found = graph.reshape(found, [*kept, channels])
    if not weights:
        return found
    weight = weights[0]
    for other in weights[1:]:
        weight = graph.like("multiply", weight, other)
    return graph.broadcasting("multiply", found, graph.reshape(weight, [*kept, 1]))


def _is_inside(graph: Graph, place: SSAValue, size: int) -> SSAValue:
    """Mask, 1 or 0, of indices inside of the image."""
    low = graph.compare("ge", place, graph.number(0.0, place), i1)
    high = graph.compare("le", place, graph.number(float(size - 1), place), i1)
    return graph.typecast(graph.compare("logical_and", low, high, i1), f32)


SAMPLING_RULES: dict[str, Rule] = {
    "grid_sampler": _grid_sampler,
    "grid_sampler_2d": _grid_sampler,
    "grid_sampler_3d": _grid_sampler,
}
"""Rules by operation name, for all overloads."""
