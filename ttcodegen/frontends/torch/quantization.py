"""Fake quantization of quantization-aware models."""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.frontends.torch.graph import Graph, Rule


def _fake_quantized(
    graph: Graph, x: SSAValue, scale: Any, zero_point: Any, least: int, most: int
) -> list[SSAValue]:
    """Quantizes and dequantizes; the mask of values in range, a second result, is never used."""
    x = graph.value(x)
    scale, zero = (graph.value(each, element_of(x.type)) for each in (scale, zero_point))
    places = graph.rounded(graph.broadcasting("div", x, scale))
    places = graph.broadcasting("add", places, zero)
    places = graph.like("clamp_scalar", places, min=float(least), max=float(most))
    return [graph.broadcasting("multiply", graph.broadcasting("subtract", places, zero), scale)]


def _fake_quantized_channels(
    graph: Graph,
    x: SSAValue,
    scale: SSAValue,
    zero_point: SSAValue,
    axis: int,
    least: int,
    most: int,
) -> list[SSAValue]:
    shape = [1] * len(shape_of(x.type))
    shape[axis] = shape_of(x.type)[axis]
    scale, zero_point = (graph.reshape(each, shape) for each in (scale, zero_point))
    return _fake_quantized(graph, x, scale, zero_point, least, most)


RULES: dict[str, Rule] = {
    "fake_quantize_per_tensor_affine_cachemask": _fake_quantized,
    "fake_quantize_per_channel_affine_cachemask": _fake_quantized_channels,
}
"""Rules by operation name, for all overloads."""
