"""Recipes of ops whose window slides over an image: convolutions, pooling; and of upsampling."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from tests.random_programs.choices import shuffled
from tests.random_programs.generator import FLOATS, Generator, Recipe, Shape, i32
from tests.random_programs.witnesses import Rejected
from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.ops.convolution.sliding_window import Window

_NAMES = {
    1: ("batch", "length", "channel"),
    2: ("batch", "height", "width", "channel"),
    3: ("batch", "depth", "height", "width", "channel"),
}


def _sizes(generator: Generator, count: int) -> list[int]:
    """Height and width, and what there is of more; not large."""
    return [generator.pick((1, 3, 5, 8) if count > 2 else (1, 4, 7, 12)) for _ in range(count)]


def _window(generator: Generator, sizes: Sequence[int], dilated: bool = True) -> Window:
    count = len(sizes)
    kernel = [generator.pick([k for k in (1, 2, 3) if k <= size]) for size in sizes]
    stride = [generator.pick((1, 1, 2, 3)) for _ in sizes]
    dilation = [
        generator.pick([d for d in (1, 1, 2) if d * (k - 1) < size])
        for k, size in zip(kernel, sizes, strict=True)
    ]
    padding = [(generator.integer(0, (k - 1) // 2 + k // 3),) * 2 for k in kernel]
    if count == 2 and generator.chance(25):
        padding = [(generator.integer(0, 1), generator.integer(0, k - 1)) for k in kernel]
        padding = [
            (min(a, k // 2), min(b, k // 2)) for (a, b), k in zip(padding, kernel, strict=True)
        ]
    dilations = tuple(dilation) if dilated else (1,) * count
    return Window(tuple(kernel), tuple(stride), tuple(padding), dilations)


def _attributes(window: Window) -> dict[str, Any]:
    """(top, left, bottom, right) only where the two sides of a dimension differ."""
    before, after = (list(side) for side in zip(*window.padding, strict=True))
    return {
        "stride": list(window.stride),
        "padding": before if before == after else before + after,
        "dilation": list(window.dilation),
    }


def _image(
    generator: Generator, channels: int, sizes: Sequence[int], element: Attribute
) -> tuple[SSAValue, list[int]]:
    """An image, and the order of its dimensions: batch, sizes, channels."""
    count = len(sizes)
    order = list(range(count + 2))
    if generator.chance(30):
        order = [0, *range(2, count + 2), 1]
    if generator.chance(5) and count == 2:
        order = shuffled(generator.choices, order)
    logical = [generator.pick((1, 2)), *sizes, channels]
    shape = [0] * len(order)
    for size, axis in zip(logical, order, strict=True):
        shape[axis] = size
    return generator.like(tuple(shape), element), order


def _convolve(generator: Generator, name: str, count: int) -> None:
    element = generator.pick(FLOATS)
    sizes = _sizes(generator, count)
    groups = generator.pick((1, 1, 1, 2, 4))
    channels = groups * generator.pick((1, 3, 8) if groups > 1 else (1, 3, 16, 32, 33))
    outputs = groups * generator.pick((1, 2, 5) if groups > 1 else (1, 4, 7, 32))
    transposed = name == "conv_transpose2d"
    window = _window(generator, sizes, dilated=name != "conv3d")
    x, order = _image(generator, channels, sizes, element)
    first = (channels, outputs // groups) if transposed else (outputs, channels // groups)
    weight = generator.argument((*first, *window.kernel), element, -0.5, 0.5)
    bias: SSAValue | None = None
    if generator.chance(60):
        bias_shape = [1] * (count + 2)
        bias_shape[order[-1]] = outputs
        bias = generator.argument(tuple(bias_shape), element)
    attributes = _attributes(window) | {"groups": groups}
    if name == "conv3d":
        del attributes["dilation"]
        if window.padding != tuple((a, a) for a, _ in window.padding):
            raise Rejected("volumes are padded alike on both sides")
    extra = [0] * count
    if transposed:
        extra = [generator.integer(0, stride - 1) for stride in window.stride]
        attributes["output_padding"] = extra
    for axis, kind in zip(order, _NAMES[count], strict=True):
        attributes[f"{kind}_dim"] = axis
    found = [
        _output(window, axis, size, transposed) + extra[axis] for axis, size in enumerate(sizes)
    ]
    if any(size < 1 for size in found):
        raise Rejected("the kernel does not fit")
    result = [0] * (count + 2)
    for size, axis in zip([shape_of(x.type)[order[0]], *found, outputs], order, strict=True):
        result[axis] = size
    generator.apply(name, [x, weight, bias], TensorType(element, result), **attributes)


def _output(window: Window, axis: int, size: int, transposed: bool) -> int:
    if not transposed:
        return window.output_size(axis, size)
    return (size - 1) * window.stride[axis] + window.reach(axis) - sum(window.padding[axis])


def conv1d(generator: Generator) -> None:
    _convolve(generator, "conv1d", 1)


def conv2d(generator: Generator) -> None:
    _convolve(generator, "conv2d", 2)


def conv3d(generator: Generator) -> None:
    _convolve(generator, "conv3d", 3)


def conv_transpose2d(generator: Generator) -> None:
    _convolve(generator, "conv_transpose2d", 2)


def _pool(generator: Generator, name: str) -> None:
    element = generator.pick(FLOATS)
    sizes = _sizes(generator, 2)
    shape = (generator.pick((1, 2)), *sizes, generator.pick((1, 3, 16, 32, 33)))
    if prod(shape) > 6000:
        raise Rejected("the image is large")
    x = generator.like(shape, element)
    average = name == "avg_pool2d"
    window = _window(generator, sizes, dilated=not average)
    window = Window(*_parts(window), ceil_mode=generator.chance(30))
    attributes = _attributes(window)
    attributes |= {"kernel": list(window.kernel), "ceil_mode": window.ceil_mode}
    if average:
        attributes["count_include_pad"] = generator.chance(50)
    found = [window.output_size(axis, size) for axis, size in enumerate(sizes)]
    if any(size < 1 for size in found):
        raise Rejected("the kernel does not fit")
    result = (shape[0], *found, shape[3])
    types = [TensorType(element, result)]
    if name == "max_pool2d_with_indices":
        types.append(TensorType(i32, result))
    generator.apply(name, [x], types, **attributes)


def _parts(window: Window) -> tuple[Shape, Shape, tuple[tuple[int, int], ...], Shape]:
    return window.kernel, window.stride, window.padding, window.dilation


def max_pool2d(generator: Generator) -> None:
    _pool(generator, "max_pool2d")


def max_pool2d_with_indices(generator: Generator) -> None:
    _pool(generator, "max_pool2d_with_indices")


def avg_pool2d(generator: Generator) -> None:
    _pool(generator, "avg_pool2d")


def global_avg_pool2d(generator: Generator) -> None:
    x = generator.floating(low=4, high=4)
    shape = shape_of(x.type)
    type_ = TensorType(element_of(x.type), (shape[0], 1, 1, shape[3]))
    generator.apply("global_avg_pool2d", [x], type_)


def upsample2d(generator: Generator) -> None:
    x = generator.floating(low=4, high=4)
    n, height, width, channels = shape_of(x.type)
    factors = [generator.pick((1, 2, 3)), generator.pick((1, 2, 3))]
    mode = generator.pick(("nearest", "bilinear"))
    result = (n, height * factors[0], width * factors[1], channels)
    if prod(result) > 6000:
        raise Rejected("the image is large")
    type_ = TensorType(element_of(x.type), result)
    generator.apply("upsample2d", [x], type_, scale_factor=factors, mode=mode)


RECIPES: dict[str, Recipe] = {
    function.__name__: function
    for function in (
        conv1d,
        conv2d,
        conv3d,
        conv_transpose2d,
        max_pool2d,
        max_pool2d_with_indices,
        avg_pool2d,
        global_avg_pool2d,
        upsample2d,
    )
}
"""A recipe for each op of this kind."""
