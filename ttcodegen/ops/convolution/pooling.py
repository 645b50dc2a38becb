"""Max and average pooling of images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import (
    element_of,
    f32,
    normalized_data_type,
    shape_of,
    ui16,
    ui32,
)
from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN, INTEGERS
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.convolution.device_windows import ARGMAX, pooled, window_axes_of
from ttcodegen.ops.convolution.sliding_window import (
    FLATTENED_ATTRIBUTE,
    Window,
    expect_image,
    image_of,
    image_shape,
    library_padding,
    padded,
    per_dimension,
    taps,
    window_attributes,
    window_on_cpu,
)
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import (
    Call,
    TTIRDefinition,
    attribute,
    operand,
    register,
    variadic,
)
from ttcodegen.ops.core.dimensions import Dimensions, all_but, expect_shape
from ttcodegen.ops.core.lowering import cpu_call
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.reduction.exact_extremes import needs_all_bits

if TYPE_CHECKING:
    import numpy

# Numpy semantics; images are (N, H, W, C).


def _views(x: numpy.ndarray, window: Window, sizes: Sequence[int]) -> Iterator[numpy.ndarray]:
    """Yields, per kernel element, the view of a padded image over all windows."""
    for tap in product(*(range(size) for size in window.kernel)):
        yield taps(x, window, sizes, tap)


def _output_sizes(x: numpy.ndarray, window: Window) -> list[int]:
    return [window.output_size(axis, size) for axis, size in enumerate(x.shape[1:3])]


def seen(x: numpy.ndarray, window: Window, fill: float = 0.0) -> Iterator[numpy.ndarray]:
    """Yields, per kernel element, the elements of the padded image that it covers."""
    return _views(padded(x, window, fill), window, _output_sizes(x, window))


def lowest(dtype: numpy.dtype) -> float:
    """Returns the lower bound of all values of a dtype."""
    if np.issubdtype(dtype, np.bool_):
        return False
    return -np.inf if np.issubdtype(dtype, np.floating) else np.iinfo(dtype).min


def max_pool(x: numpy.ndarray, window: Window) -> numpy.ndarray:
    """Maximum of each window; padding is never chosen."""
    views = seen(x, window, lowest(x.dtype))
    result = next(views).copy()
    for view in views:
        np.maximum(result, view, out=result)
    return result


def max_pool_indices(x: numpy.ndarray, window: Window) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Returns the maxima and the image index of the first maximum of each window.

    The index is row * width + column.
    """
    _, height, width, _ = x.shape
    indices = np.indices((height * width,), dtype=np.int64).reshape(1, height, width, 1)
    index_views = seen(indices, window)
    views = seen(x, window, lowest(x.dtype))
    best = next(views).copy()
    index = np.broadcast_to(next(index_views), best.shape).copy()
    # In a window that starts in the padding, the first element of the image comes later.
    found = best != lowest(x.dtype)
    for view, candidate in zip(views, index_views, strict=True):
        # NaN is the maximum, as in max_pool.
        better = (view > best) | (~found & (view != lowest(x.dtype)))
        better |= (view != view) & (best == best)
        found |= better
        best = np.where(better, view, best)
        index = np.where(better, candidate, index)
    return best, index


def window_counts(window: Window, height: int, width: int, count_padding: bool) -> numpy.ndarray:
    """Returns the element counts by which each window's sum is divided, (1, Ho, Wo, 1).

    Padding counts if requested; the positions that `ceil_mode` adds never do.
    """
    ones = np.ones((1, height, width, 1), dtype=np.float32)
    widths = [(0, 0), *window.padding, (0, 0)]
    beyond = [(0, window.overhang(axis, size)) for axis, size in enumerate((height, width))]
    inside = np.pad(ones, widths, constant_values=1.0 if count_padding else 0.0)
    inside = np.pad(inside, [(0, 0), *beyond, (0, 0)])
    return np.sum(list(_views(inside, window, _output_sizes(ones, window))), axis=0)


def avg_pool(x: numpy.ndarray, window: Window, count_padding: bool) -> numpy.ndarray:
    """Mean of each window."""
    _, height, width, _ = x.shape
    views = seen(x, window)
    result = next(views).astype(np.result_type(x.dtype, np.float32))
    for view in views:
        result += view
    # The mean of a window of only padding is 0.
    return result / np.maximum(window_counts(window, height, width, count_padding), 1.0)


# TTIR


def _window(op: CatalogueOp | Call) -> Window:
    return Window.of(op, per_dimension(op, "kernel", 2))


def _verify_pool(op: CatalogueOp) -> None:
    """The number of windows is the result's height and width."""
    n, height, width, channels = image_shape(op)
    window = _window(op)
    expect_image(op, (n, *window.output_sizes(op, (height, width)), channels))  # pyright: ignore
    for result in op.results[1:]:
        data_type = normalized_data_type(element_of(result.type))
        if data_type is None or data_type.is_float:
            raise VerifyException(
                f"{op.name}: expected indices of an integer type, found {element_of(result.type)}"
            )


def _pooling_on_cpu(op: CatalogueOp) -> dict[str, Any]:
    """Returns the fields of `cpu::Pooling`."""
    n, height, width, c = image_shape(op)
    window = _window(op)
    flattened = op.parameter(FLATTENED_ATTRIBUTE.name) is not None
    counts = op.name == "ttir.avg_pool2d" and op.parameter("count_include_pad")
    return {
        "kernel": window.kernel,
        **window_on_cpu(window),
        "outputs": window.output_sizes(op, (height, width)),
        "rows": [n, height, width, c] if flattened else None,
        "count_padding": (counts and any(map(any, window.padding))) or None,
    }


def _max_pool2d(call: Call) -> numpy.ndarray:
    return max_pool(image_of(call), _window(call)).reshape(call.results[0].shape)


def _avg_pool2d(call: Call) -> numpy.ndarray:
    result = avg_pool(image_of(call), _window(call), call["count_include_pad"])
    return result.reshape(call.results[0].shape)


def _max_pool2d_with_indices(call: Call) -> list[numpy.ndarray]:
    both = max_pool_indices(image_of(call), _window(call))
    return [array.reshape(call.results[0].shape) for array in both]


def _fits_library(window: Window) -> bool:
    """True if the padding is at most half of the kernel, as the library requires."""
    return all(
        max(pair) <= size // 2 for pair, size in zip(window.padding, window.kernel, strict=True)
    )


def _is_identity(window: Window) -> bool:
    return {*window.kernel, *window.stride} == {1} and all(p == (0, 0) for p in window.padding)


def _pool(
    builder: OpBuilder,
    op: CatalogueOp,
    name: str,
    value: SSAValue,
    window: Window,
    elements: Sequence[object],
    **attributes: object,
) -> list[SSAValue]:
    """Emits the library's pooling; operand and results are rows of channels.

    The image size comes from the op, or from `value` if it was padded.
    """
    n, height, width, channels = image_shape(op)
    if shape_of(value.type) != op.shape("input"):
        n, height, width, channels = shape_of(value.type)
    sizes = window.output_sizes(op, (height, width))
    value = builder.reshape(value, [1, 1, n * height * width, channels])
    made = builder.emit_op(
        name,
        [value],
        [
            TensorType(element, [1, 1, n * sizes[0] * sizes[1], channels])  # pyright: ignore
            for element in elements
        ],
        batch_size=n,
        input_height=height,
        input_width=width,
        channels=channels,
        kernel_size=list(window.kernel),
        stride=list(window.stride),
        padding=library_padding(window),
        ceil_mode=window.ceil_mode,
        **attributes,
    )
    return list(made.results)


def _with_explicit_padding(
    builder: OpBuilder, op: CatalogueOp, window: Window, fill: float
) -> tuple[SSAValue, Window]:
    """Pads the image explicitly; returns it and the window without padding."""
    n, height, width, channels = image_shape(op)
    ends = [
        (count - 1) * window.stride[axis] + window.reach(axis)
        for axis, count in enumerate(window.output_sizes(op, (height, width)))
    ]
    widths = [
        (before, max(0, end - size - before))
        for (before, _), end, size in zip(window.padding, ends, (height, width), strict=True)
    ]
    value = builder.reshape(builder.operand(op, "input"), [n, height, width, channels])
    value = builder.pad(value, [*widths, (0, 0)], fill)
    none = ((0, 0), (0, 0))
    return value, Window(window.kernel, window.stride, none, window.dilation)


def _exact_maxima(builder: OpBuilder, op: CatalogueOp, window: Window) -> SSAValue:
    """Max pooling of float32 by slices and maximum ops, along rows, then columns.

    The library's max_pool2d is limited to bfloat16.
    """
    value, window = _with_explicit_padding(builder, op, window, -np.inf)
    _, height, width, _ = shape_of(value.type)
    counts = window.output_sizes(op, (height, width))
    for axis, count in enumerate(counts, start=1):
        stride, dilation = window.stride[axis - 1], window.dilation[axis - 1]
        seen: list[SSAValue] = []
        for first in range(0, window.kernel[axis - 1] * dilation, dilation):
            begins, ends, steps = [0] * 4, list(shape_of(value.type)), [1] * 4
            begins[axis], ends[axis] = first, first + (count - 1) * stride + 1
            steps[axis] = stride
            seen.append(builder.slice(value, begins, ends, steps))
        value = reduce(lambda a, b: builder.like("maximum", a, b), seen)
    return value


def _lower_max_pool2d(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    window = _window(op)
    element = element_of(op.result_type)
    value = builder.operand(op, "input")
    if _is_identity(window):
        return builder.typecast(value, element)
    if needs_all_bits(op):
        return builder.reshape(_exact_maxima(builder, op, window), op.result_shape)
    if not _fits_library(window):
        value, window = _with_explicit_padding(builder, op, window, -np.inf)
    dilation = list(window.dilation)
    (rows,) = _pool(builder, op, "max_pool2d", value, window, [element], dilation=dilation)
    return builder.reshape(rows, op.result_shape)


def _lower_max_pool2d_with_indices(builder: OpBuilder, op: CatalogueOp) -> list[SSAValue]:
    """Lowers to the call; its indices have 16 bits if they suffice for the image."""
    window = _window(op)
    _, height, width, _ = image_shape(op)
    value = builder.operand(op, "input")
    wide, first = width, 0
    if not _fits_library(window):
        (top, _), (left, _) = window.padding
        value, window = _with_explicit_padding(builder, op, window, -np.inf)
        _, height, wide, _ = shape_of(value.type)
        first = top * width + left
    index = ui16 if height * wide <= 0xFFFF else ui32
    maxima, indices = _pool(
        builder,
        op,
        "max_pool2d_with_indices",
        value,
        window,
        [element_of(op.result_type), index],
        dilation=list(window.dilation),
    )
    # Before the reshape, which does not support 16-bit integers.
    if (wide, first) != (width, 0):
        indices = _without_padding_offset(builder, indices, wide, width, first)
    indices = builder.typecast(indices, element_of(op.results[1].type))
    return [builder.reshape(rows, op.result_shape) for rows in (maxima, indices)]


def _without_padding_offset(
    builder: OpBuilder, indices: SSAValue, wide: int, narrow: int, first: int
) -> SSAValue:
    """Converts indices in a padded image to indices in the original one.

    `first` is the index of the first original element, `wide` and `narrow` are the widths. Computed
    in f32, which is exact up to 2**24.
    """

    def scalar(name: str, value: SSAValue, number: float) -> SSAValue:
        return builder.emit(name, [value, None], value.type, scalar=number)

    indices = builder.typecast(indices, f32)
    result = scalar("subtract", indices, float(first))
    if wide == narrow:
        return result
    rows = scalar("multiply", scalar("add", indices, 0.5), 1.0 / wide)
    skipped = scalar("multiply", builder.like("floor", rows), float(wide - narrow))
    return builder.like("subtract", result, skipped)


def _lower_avg_pool2d(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    window = _window(op)
    element = element_of(op.result_type)
    value = builder.operand(op, "input")
    if _is_identity(window):
        return builder.typecast(value, element)
    if window.dilation != (1, 1) or not _fits_library(window):
        return _mean_by_convolution(builder, op, window)
    counted = op.parameter("count_include_pad")
    (rows,) = _pool(builder, op, "avg_pool2d", value, window, [element], count_include_pad=counted)
    return builder.reshape(rows, op.result_shape)


def _mean_by_convolution(builder: OpBuilder, op: CatalogueOp, window: Window) -> SSAValue:
    """Average pooling as a depthwise convolution with ones, divided by the counts.

    For dilation and large padding, which the library's avg_pool2d does not support.
    """
    n, height, width, channels = image_shape(op)
    sizes = window.output_sizes(op, (height, width))
    element = element_of(op.result_type)
    counts = window_counts(window, height, width, op.parameter("count_include_pad"))
    value, bare = _with_explicit_padding(builder, op, window, 0.0)
    _, high, wide, _ = shape_of(value.type)
    sums = builder.emit(
        "conv2d",
        [
            builder.reshape(value, [1, 1, n * high * wide, channels]),
            builder.full([channels, 1, *window.kernel], 1.0, element),
            None,
        ],
        TensorType(element, [1, 1, n * sizes[0] * sizes[1], channels]),
        in_channels=channels,
        out_channels=channels,
        batch_size=n,
        input_height=high,
        input_width=wide,
        kernel_size=list(bare.kernel),
        stride=list(bare.stride),
        dilation=list(bare.dilation),
        groups=channels,
    )
    factors = 1.0 / np.maximum(np.tile(counts.reshape(-1), n), 1.0)
    type_ = TensorType(f32, [1, 1, len(factors), 1])
    constant = builder.emit(
        "constant", [], type_, value=DenseIntOrFPElementsAttr.from_list(type_, factors.tolist())
    )
    means = builder.broadcasting("multiply", sums, builder.typecast(constant, element))
    return builder.reshape(means, op.result_shape)


def _pool_program(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Window reduction; a mean is the sum times a factor for each window."""
    if not declared_data_type(op.operands[0]).is_float:
        return None
    n, height, width, channels = image_shape(op)
    window = _window(op)
    image = builder.reshape(builder.operand(op, "input"), [n, height, width, channels])
    axes = window_axes_of(window, (height, width))
    element = element_of(op.result_type)
    if op.name == "ttir.max_pool2d":
        return builder.reshape(pooled(builder, image, axes, "max", element), op.result_shape)
    value = pooled(builder, image, axes, "sum", f32)
    counts = window_counts(window, height, width, op.parameter("count_include_pad"))
    factors = (1.0 / np.maximum(counts, 1.0)).astype(np.float32)
    is_even = bool((factors == factors.flat[0]).all())
    factor = (
        builder.full([1, 1, 1, 1], float(factors.flat[0]), f32)
        if is_even
        else builder.constant(factors)
    )
    value = builder.broadcasting("multiply", value, factor)
    return builder.reshape(builder.typecast(value, element), op.result_shape)


_MOST_INDICES = 1 << 24
"""Largest number of image elements whose indices are exact in float32."""


def _indices_program(builder: OpBuilder, op: CatalogueOp) -> list[SSAValue] | None:
    """One program finds the maxima, another their kernel index, from which the image index
    follows.
    """
    n, height, width, channels = image_shape(op)
    if not declared_data_type(op.operands[0]).is_float or height * width > _MOST_INDICES:
        return None
    window = _window(op)
    image = builder.reshape(builder.operand(op, "input"), [n, height, width, channels])
    axes = window_axes_of(window, (height, width))
    elements = [element_of(result.type) for result in op.results]
    maxima = pooled(builder, image, axes, "max", elements[0])
    rows, columns = axes
    first_rows, first_columns = (
        np.arange(axis.count, dtype=np.float32) * axis.stride - axis.before for axis in axes
    )
    first = first_rows[:, None] * width + first_columns[None]
    tap = pooled(builder, image, axes, ARGMAX, f32)

    def scaled(name: str, value: SSAValue, number: float) -> SSAValue:
        return builder.broadcasting(name, value, builder.full([1] * 4, number, f32))

    place = tap if columns.spacing == 1 else scaled("multiply", tap, float(columns.spacing))
    place = builder.broadcasting("add", place, builder.constant(first[None, :, :, None]))
    further = rows.spacing * width - columns.spacing * columns.taps
    if rows.taps > 1 and further:
        row = scaled("multiply", scaled("add", tap, 0.5), 1.0 / columns.taps)
        row = scaled("multiply", builder.like("floor", row), float(further))
        place = builder.like("add", place, row)
    found = [maxima, builder.typecast(place, elements[1])]
    return [builder.reshape(value, op.result_shape) for value in found]


_POOL = (
    attribute("kernel", INTEGERS),
    *window_attributes(),
    attribute("ceil_mode", BOOLEAN, False),
)


def _images_and_channels(op: CatalogueOp) -> Dimensions | None:
    """Labels: images and channels can be sharded."""
    if op.parameter(FLATTENED_ATTRIBUTE.name) is not None or len(op.shape("input")) != 4:
        return None
    return all_but(op, (1, 2))


register(
    TTIRDefinition(
        "ttir.max_pool2d",
        (operand("input"),),
        (*_POOL, FLATTENED_ATTRIBUTE),
        verify=_verify_pool,
        dimensions=_images_and_channels,
        numpy=_max_pool2d,
        program=_pool_program,
        lower=_lower_max_pool2d,
        cpu=cpu_call("pooling", _pooling_on_cpu),
        counts=True,
        traits=Trait.KEEPS_TRUTH,
    )
)

register(
    TTIRDefinition(
        "ttir.max_pool2d_with_indices",
        # The source may still pass output tensors, whose contents are not used.
        (operand("input"), variadic("output")),
        (*_POOL, FLATTENED_ATTRIBUTE),
        results=2,
        verify=_verify_pool,
        numpy=_max_pool2d_with_indices,
        program=_indices_program,
        lower=_lower_max_pool2d_with_indices,
        traits=Trait.OWN_NAN_IN_TILES,
        cpu=cpu_call("pooling", _pooling_on_cpu, operands=["input"]),
    )
)

register(
    TTIRDefinition(
        "ttir.avg_pool2d",
        (operand("input"),),
        (*_POOL, attribute("count_include_pad", BOOLEAN, True), FLATTENED_ATTRIBUTE),
        verify=_verify_pool,
        dimensions=_images_and_channels,
        numpy=_avg_pool2d,
        program=_pool_program,
        lower=_lower_avg_pool2d,
        cpu=cpu_call("pooling", _pooling_on_cpu),
    )
)


def _verify_global(op: CatalogueOp) -> None:
    """Height and width, which precede the channels, become 1."""
    shape = op.shape("input")
    if len(shape) < 3:
        raise VerifyException(f"{op.name}: expected an input of rank 3 or more, found {shape}")
    expect_shape(op, [*shape[:-3], 1, 1, shape[-1]])


def _decompose_global(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Mean over rows: the library's global_avg_pool2d divides by the padded width.

    Source: ttnn/operations/pool/global_avg_pool/global_avg_pool.cpp of tt-metal.
    """
    *batch, height, width, channels = op.shape("input")
    rows = builder.reshape(builder.operand(op, "input"), [*batch, 1, height * width, channels])
    means = builder.reduce("mean", rows, [len(batch) + 1])
    return builder.typecast(means, element_of(op.result_type))


register(
    TTIRDefinition(
        "ttir.global_avg_pool2d",
        (operand("input"),),
        (),
        verify=_verify_global,
        numpy=lambda call: call.array("input").mean(axis=(-3, -2), keepdims=True),
        decompose=_decompose_global,
        nouns=("pooled",),
    )
)
