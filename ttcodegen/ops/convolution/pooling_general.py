"""StableHLO's reduce_window pooling, decomposed to that of images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import element_of, numpy_name, shape_of
from ttcodegen.dialects.operations.attribute_kinds import ENUMERATOR, INTEGERS, AttributeKind
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.convolution.pooling import lowest
from ttcodegen.ops.convolution.sliding_window import surrounded
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import Call, TTIRDefinition, attribute, register, variadic
from ttcodegen.ops.core.dimensions import Dimensions, Labels, expect_shape

if TYPE_CHECKING:
    import numpy

METHODS = ("average", "max", "sum")


def _decode_method(value: Attribute) -> str:
    """Reads `#ttir<pooling_method Max>`."""
    method = ENUMERATOR.decode(value).split()[-1].lower()
    if method not in METHODS:
        raise ValueError(method)
    return method


POOLING_METHOD = AttributeKind[str](
    f"one of {', '.join(METHODS)}", _decode_method, ENUMERATOR.encode
)


@dataclass(frozen=True)
class _Windows:
    """Window parameters for each dimension of the tensor."""

    method: str
    size: tuple[int, ...]
    stride: tuple[int, ...]
    base: tuple[int, ...]
    """Base dilation: distance between elements of the tensor; the gaps are neutral."""
    dilation: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]

    @staticmethod
    def of(source: CatalogueOp | Call, rank: int) -> _Windows:
        read = source.parameter if isinstance(source, CatalogueOp) else source.__getitem__
        widths: list[int] = read("padding") or [0] * (2 * rank)
        ones = [1] * rank
        return _Windows(
            read("pooling_method"),
            tuple(read("window_dimensions")),
            tuple(read("window_strides") or ones),
            tuple(read("base_dilations") or ones),
            tuple(read("window_dilations") or ones),
            tuple(zip(widths[::2], widths[1::2], strict=True)),
        )

    def output(self, shape: Sequence[int]) -> list[int]:
        """Returns the shape of the result."""
        return [
            max(0, ((n - 1) * base + 1 + sum(pair) - dilation * (size - 1) - 1) // stride + 1)
            for n, size, stride, base, dilation, pair in zip(
                shape, self.size, self.stride, self.base, self.dilation, self.padding, strict=True
            )
        ]

    def moves(self, dim: int) -> bool:
        """True unless windows along the dimension are single elements, one after another."""
        ones = (self.size[dim], self.stride[dim], self.base[dim])
        return ones != (1, 1, 1) or self.padding[dim] != (0, 0)

    def neutral(self, dtype: numpy.dtype) -> float:
        """Returns the neutral element of the pooling, which fills the padding."""
        return lowest(dtype) if self.method == "max" else 0.0


def _verify(op: CatalogueOp) -> None:
    """Each result has an element for every window of its input."""
    inputs = list(op.operands)
    if not inputs or len(inputs) != len(op.results):
        raise VerifyException(
            f"{op.name}: expected as many results as inputs, at least one, found {len(inputs)} "
            f"inputs and {len(op.results)} results"
        )
    rank = len(shape_of(inputs[0].type))
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    for name in names:
        values = op.parameter(name)
        if values is not None and (len(values) != rank or min(values, default=1) < 1):
            raise VerifyException(
                f"{op.name}: expected {rank} positive numbers in '{name}', found {tuple(values)}"
            )
    if len(op.parameter("padding") or [0] * (2 * rank)) != 2 * rank:
        raise VerifyException(f"{op.name}: expected {2 * rank} numbers in 'padding'")
    windows = _Windows.of(op, rank)
    for index, value in enumerate(inputs):
        if len(shape_of(value.type)) != rank:
            raise VerifyException(f"{op.name}: expected inputs of one rank")
        expect_shape(op, windows.output(shape_of(value.type)), index)


def _pooled(x: numpy.ndarray, windows: _Windows) -> numpy.ndarray:
    wide = x.astype(np.int64) if np.issubdtype(x.dtype, np.integer) else x
    fill = windows.neutral(wide.dtype)
    dilated = [(n - 1) * base + 1 for n, base in zip(x.shape, windows.base, strict=True)]
    image = np.full(dilated, fill, dtype=wide.dtype)
    image[tuple(slice(None, None, base) for base in windows.base)] = wide
    for axis, (before, after) in enumerate(windows.padding):
        end = image.shape[axis] + min(after, 0)
        image = image.take(range(max(-before, 0), end), axis=axis)
    around = [(max(before, 0), max(after, 0)) for before, after in windows.padding]
    image = np.pad(image, around, constant_values=fill)
    counts = windows.output(x.shape)
    result = None
    for tap in product(*map(range, windows.size)):
        seen = image[
            tuple(
                slice(offset * dilation, offset * dilation + (count - 1) * stride + 1, stride)
                for offset, dilation, count, stride in zip(
                    tap, windows.dilation, counts, windows.stride, strict=True
                )
            )
        ]
        if result is None:
            result = seen.copy()
        elif windows.method == "max":
            result = np.maximum(result, seen)
        else:
            result = result + seen
    assert result is not None
    return result / prod(windows.size) if windows.method == "average" else result


def _meaning(call: Call) -> list[numpy.ndarray]:
    return [_pooled(x, _Windows.of(call, x.ndim)) for x in call.operands["inputs"]]


def _decompose(builder: OpBuilder, op: CatalogueOp) -> list[SSAValue]:
    """Pools two dimensions at a time, as height and width of an image.

    Padding counts in every mean.
    """
    results: list[SSAValue] = []
    for value, result in zip(op.operands, op.results, strict=True):
        value = builder[value]
        windows = _Windows.of(op, len(shape_of(value.type)))
        if prod(shape_of(result.type)) == 0:
            results.append(builder.full(shape_of(result.type), 0.0, element_of(result.type)))
            continue
        value = _dilated_and_cropped(builder, windows, value)
        moving = [dim for dim in range(len(windows.size)) if windows.moves(dim)]
        for first in range(0, len(moving), 2):
            value = _pool_image(builder, windows, value, moving[first : first + 2])
        results.append(builder.typecast(value, element_of(result.type)))
    return results


def _dilated_and_cropped(builder: OpBuilder, windows: _Windows, value: SSAValue) -> SSAValue:
    """Applies base dilation and crops negative padding."""
    name = numpy_name(element_of(value.type)) or "float32"
    fill = windows.neutral(np.dtype("float32" if name == "bfloat16" else name))
    for dim, step in enumerate(windows.base):
        shape = list(shape_of(value.type))
        if step > 1 and shape[dim] > 1:
            before, size, after = prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :])
            value = builder.reshape(value, [before, size, 1, after])
            between = [(0, 0), (0, 0), (0, step - 1), (0, 0)]
            value = surrounded(builder, value, between, fill)
            value = builder.reshape(value, [*shape[:dim], size * step, *shape[dim + 1 :]])
            value = builder.slice_dim(value, dim, 0, (size - 1) * step + 1)
    shape = shape_of(value.type)
    begins = [max(-before, 0) for before, _ in windows.padding]
    ends = [size + min(after, 0) for size, (_, after) in zip(shape, windows.padding, strict=True)]
    return builder.slice(value, begins, ends)


def _pool_image(
    builder: OpBuilder, windows: _Windows, value: SSAValue, dims: Sequence[int]
) -> SSAValue:
    """Pools one or two dimensions; the others are batch and, the last one, channels."""
    shape = shape_of(value.type)
    others = [dim for dim in range(len(shape)) if dim not in dims]
    # The last remaining dimension becomes the channels: it is cheapest to leave in place.
    permutation = [*others[:-1], *dims, *others[-1:]]
    value = builder.permute(value, permutation)
    sizes = [*(shape[dim] for dim in dims), *[1] * (2 - len(dims))]
    channels = shape[others[-1]] if others else 1
    images = prod(shape[dim] for dim in others[:-1])
    value = builder.reshape(value, [images, *sizes, channels])
    pad = [(max(0, before), max(0, after)) for before, after in (windows.padding[d] for d in dims)]
    pad += [(0, 0)] * (2 - len(dims))
    (top, bottom), (left, right) = pad

    def pair(numbers: Sequence[int]) -> list[int]:
        return [*(numbers[dim] for dim in dims), *[1] * (2 - len(dims))]

    kernel, stride, dilation = pair(windows.size), pair(windows.stride), pair(windows.dilation)
    counts = [
        (size + sum(around) - step * (taps - 1) - 1) // stride_ + 1
        for size, around, step, taps, stride_ in zip(
            sizes, pad, dilation, kernel, stride, strict=True
        )
    ]
    averages = windows.method != "max"
    value = builder.emit(
        "avg_pool2d" if averages else "max_pool2d",
        [value],
        TensorType(element_of(value.type), [images, *counts, channels]),
        kernel=kernel,
        stride=stride,
        padding=[top, left, bottom, right],
        dilation=dilation,
        **({"count_include_pad": True} if averages else {}),
    )
    if windows.method == "sum":
        factor = builder.full([1, 1, 1, 1], prod(kernel), element_of(value.type))
        value = builder.broadcasting("multiply", value, factor)
    pooled = [counts[dims.index(dim)] if dim in dims else shape[dim] for dim in permutation]
    value = builder.reshape(value, pooled)
    return builder.permute(value, [permutation.index(dim) for dim in range(len(shape))])


def _outside_windows(op: CatalogueOp) -> Dimensions:
    """Labels of the dimensions that windows do not move along."""
    rank = len(op.result_shape)
    windows = _Windows.of(op, rank)
    labels: Labels = tuple([None if windows.moves(dim) else dim for dim in range(rank)])
    return Dimensions([labels] * len(op.operands), [labels] * len(op.results))


register(
    TTIRDefinition(
        "ttir.pooling",
        (variadic("inputs"),),
        (
            attribute("pooling_method", POOLING_METHOD),
            attribute("window_dimensions", INTEGERS),
            attribute("window_strides", INTEGERS, None),
            attribute("base_dilations", INTEGERS, None),
            attribute("window_dilations", INTEGERS, None),
            attribute("padding", INTEGERS, None),
        ),
        results=-1,
        verify=_verify,
        dimensions=_outside_windows,
        numpy=_meaning,
        decompose=_decompose,
    )
)
