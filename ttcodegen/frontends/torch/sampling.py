"""Images sampled at positions that a tensor holds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, i1, shape_of, tensor_type
from ttcodegen.frontends.torch.graph import Graph, Rule
from ttcodegen.frontends.torch.layers import channels_first, channels_last

_BILINEAR, _NEAREST, _BICUBIC = range(3)
_ZEROS, _BORDER, _REFLECTION = range(3)
_SLOPE = -0.75
"""Of torch's cubic interpolation."""

Tap = tuple[SSAValue, SSAValue | None]
"""The position of an element along one dimension, and how much it counts; None for all of it."""


def _grid_sampler(
    graph: Graph, x: SSAValue, grid: SSAValue, mode: int, padding: int, align_corners: bool
) -> SSAValue:
    """The elements of an image, or a volume, at the positions of a grid: its last dimension holds
    their coordinates from -1 to 1, those of the image's last dimension first."""
    sizes = shape_of(x.type)[2:]
    grid = graph.typecast(grid, f32)
    taps: list[list[Tap]] = []
    for axis, size in enumerate(sizes):
        place = len(sizes) - 1 - axis
        at = graph.part(grid, len(sizes) + 1, place, place + 1)
        at = graph.reshape(at, shape_of(grid.type)[:-1])
        at = _unnormalized(graph, at, size, align_corners)
        if mode != _BICUBIC and padding != _ZEROS:
            # The position is moved into the image before it is divided among its neighbours.
            at = _inside(graph, at, size, padding, align_corners)
        taps.append(_taps(graph, at, mode))
    image = graph.typecast(channels_last(graph, x), f32)
    total: SSAValue | None = None
    for corner in product(*taps):
        found = _weighted(graph, image, corner, padding, align_corners)
        total = found if total is None else graph.like("add", total, found)
    assert total is not None
    return graph.typecast(channels_first(graph, total), element_of(x.type))


def _unnormalized(graph: Graph, at: SSAValue, size: int, align_corners: bool) -> SSAValue:
    """Coordinates in elements: -1 and 1 are the centres of the first and last one, or their outer
    edges."""
    scale = (size - 1) / 2 if align_corners else size / 2
    return _affine(graph, at, scale, (size - 1) / 2)


def _affine(graph: Graph, value: SSAValue, scale: float, offset: float) -> SSAValue:
    scaled = graph.like("multiply", value, graph.number(scale, value))
    return graph.like("add", scaled, graph.number(offset, value))


def _inside(graph: Graph, at: SSAValue, size: int, padding: int, align_corners: bool) -> SSAValue:
    """Coordinates within the image: those beyond its border are there, or reflected at it."""
    if padding == _REFLECTION:
        at = _reflected(graph, at, size, align_corners)
    return graph.like("clamp_scalar", at, min=0.0, max=float(size - 1))


def _reflected(graph: Graph, at: SSAValue, size: int, align_corners: bool) -> SSAValue:
    """At the centres of the outer elements, or at their outer edges: a wave of triangles."""
    low, span = (0.0, float(size - 1)) if align_corners else (-0.5, float(size))
    if span == 0:
        return graph.like("multiply", at, graph.number(0.0, at))
    distance = graph.like("abs", _affine(graph, at, 1.0, -low))
    within = graph.like("remainder", distance, graph.number(2 * span, at))
    from_end = graph.like("abs", _affine(graph, within, 1.0, -span))
    return _affine(graph, from_end, -1.0, span + low)


def _taps(graph: Graph, at: SSAValue, mode: int) -> list[Tap]:
    """The elements along one dimension that count at a position."""
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
    """The weight of cubic interpolation at a distance below one, or between one and two."""
    factors = (_SLOPE + 2, -(_SLOPE + 3), 0.0, 1.0)
    if not near:
        factors = (_SLOPE, -5 * _SLOPE, 8 * _SLOPE, -4 * _SLOPE)
    result = _affine(graph, distance, factors[0], factors[1])
    for factor in factors[2:]:
        scaled = graph.like("multiply", result, distance)
        result = graph.like("add", scaled, graph.number(factor, distance))
    return result


def _weighted(
    graph: Graph, image: SSAValue, corner: Sequence[Tap], padding: int, align_corners: bool
) -> SSAValue:
    """The elements that one tap of each dimension names, times the weights of the taps. Elements
    outside count nothing, or those that replace them."""
    batch, *sizes, channels = shape_of(image.type)
    weights = [weight for _, weight in corner if weight is not None]
    kept = shape_of(corner[0][0].type)
    flat = graph.reshape(graph.constant(np.arange(batch), i32), [batch] + [1] * (len(kept) - 1))
    flat = graph.repeat(flat, kept)
    for (place, _), size in zip(corner, sizes, strict=True):
        if padding == _ZEROS:
            weights.append(_is_inside(graph, place, size))
        place = _inside(graph, place, size, padding, align_corners)
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
    """1 for places of elements, 0 for others."""
    low = graph.compare("ge", place, graph.number(0.0, place), i1)
    high = graph.compare("le", place, graph.number(float(size - 1), place), i1)
    return graph.typecast(graph.compare("logical_and", low, high, i1), f32)


RULES: dict[str, Rule] = {
    "grid_sampler": _grid_sampler,
    "grid_sampler_2d": _grid_sampler,
    "grid_sampler_3d": _grid_sampler,
}
"""Operations by their names, for all their overloads."""
