"""Pooling, over one, two or three dimensions, and to sizes that are given."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import f32, shape_of, tensor_type
from ttcodegen.frontends.torch.graph import Graph, Rule, kind_of, unsupported_argument
from ttcodegen.frontends.torch.layers import channels_first, channels_last, each_of, emit_on_images
from ttcodegen.frontends.torch.resizing import weighted_along


def _pooled(graph: Graph, name: str, x: SSAValue, spatial: int, **attributes: Any) -> SSAValue:
    """A pool over the last dimensions; images of one dimension are one high."""
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
        if divisor_override is not None and ceil_mode:
            raise unsupported_argument(
                f"avg_pool{spatial}d with ceil_mode", "divisor_override", divisor_override
            )
        pool = _pooled_in_space if spatial == 3 else _pooled
        window = _pool_window(spatial, kernel, stride, padding)
        averaged = pool(
            graph, "avg_pool2d", x, spatial, ceil_mode=ceil_mode,
            count_include_pad=count_include_pad or divisor_override is not None, **window,
        )  # fmt: skip
        if divisor_override is None:
            return averaged
        factor = graph.number(prod(window["kernel"]) / divisor_override, averaged)
        return graph.broadcasting("multiply", averaged, factor)

    return rule


def _whole_means(
    graph: Graph,
    x: SSAValue,
    spatial: int,
    window: dict[str, Any],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> SSAValue:
    """Means of integers: the sums of windows, exact, and their quotients cut towards zero."""
    kernel, stride, padding = (list(window[key]) for key in ("kernel", "stride", "padding"))
    kernel, stride = kernel[-spatial:], stride[-spatial:]
    padding = padding[: len(padding) // 2][-spatial:]
    if prod(kernel) > _MOST_WINDOW:
        raise unsupported_argument("a pool of integers", "kernel_size", kernel)
    sizes, made = shape_of(x.type)[-spatial:], graph.shape[-spatial:]
    lead = len(shape_of(x.type)) - spatial
    counts = np.ones([1] * lead + [1] * spatial)
    widths = [(0, 0)] * lead
    for axis in range(spatial):
        begins = np.arange(made[axis]) * stride[axis] - padding[axis]
        limit = sizes[axis] + padding[axis]
        ends = np.minimum(begins + kernel[axis], limit)
        if not count_include_pad:
            begins, ends = np.maximum(begins, 0), np.minimum(ends, sizes[axis])
        shape = [1] * (lead + spatial)
        shape[lead + axis] = -1
        counts = counts * (ends - begins).reshape(shape)
        reach = (made[axis] - 1) * stride[axis] + kernel[axis]
        widths.append((padding[axis], max(reach - padding[axis] - sizes[axis], 0)))
    wide = graph.pad(graph.typecast(x, i32), widths, 0)
    total: SSAValue | None = None
    for place in np.ndindex(*kernel):
        part = wide
        for axis, (at, step, count) in enumerate(zip(place, stride, made, strict=True)):
            part = graph.part(part, lead + axis, at, at + (count - 1) * step + 1, step)
        total = part if total is None else graph.like("add", total, part)
    assert total is not None
    share = counts if divisor is None else np.full_like(counts, divisor)
    # A little more than the quotient, for one that is whole may come out just below.
    sums = graph.typecast(total, f32)
    quotient = graph.broadcasting("div", sums, graph.constant(share, f32))
    slack = graph.broadcasting("multiply", quotient, graph.number(1 + 2.0**-20, quotient))
    return graph.typecast(graph.like("trunc", slack), graph.element)


_MOST_WINDOW = 512
"""The most elements of a window of integers, each of which is an addition."""


def _pooled_in_space(
    graph: Graph, name: str, x: SSAValue, _: int, *, ceil_mode: bool, **window: Any
) -> SSAValue:
    """A pool over three dimensions: one over rows and columns of every layer, and one over the
    layers. Extremes and means of whole windows are those of their layers."""
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
    """A pool over the last two of four dimensions, to these sizes."""
    batch, channels = shape_of(images.type)[:2]
    result = tensor_type(graph.element, [batch, *sizes, channels])
    return channels_first(graph, graph.emit(name, [channels_last(graph, images)], result,
                                            **attributes))  # fmt: skip


def _adaptive(name: str, spatial: int) -> Rule:
    """A pool whose windows are as large as the result is small; where sizes do not divide, they
    overlap and differ, and each dimension is pooled by itself."""

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
    """One dimension to a size: the i-th window is from floor(i n / size) to ceil((i + 1) n / size),
    as PyTorch has it."""
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


def _first(rule: Rule) -> Rule:
    """A pool that gives places as well, which are rarely used."""

    def wrapped(graph: Graph, *arguments: Any, **named: Any) -> list[SSAValue]:
        value = rule(graph, *arguments, **named)
        assert isinstance(value, SSAValue)
        return [value]

    return wrapped


RULES: dict[str, Rule] = {
    **{f"max_pool{n}d": _max_pool(n) for n in (1, 2, 3)},
    **{f"max_pool{n}d_with_indices": _first(_max_pool(n)) for n in (2, 3)},
    **{f"avg_pool{n}d": _avg_pool(n) for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": _adaptive("avg_pool2d", n) for n in (1, 2, 3)},
    **{f"_adaptive_avg_pool{n}d": _adaptive("avg_pool2d", n) for n in (2, 3)},
    **{f"adaptive_max_pool{n}d": _first(_adaptive("max_pool2d", n)) for n in (1, 2, 3)},
}
"""Operations by their names, for all their overloads."""
