"""Canonical convolution and pooling of device programs, and dimension numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.dialects.operations.attribute_kinds import INTEGER, INTEGERS, STRING
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.convolution.sliding_window import Window, convolution, taps
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import Call, TTIRDefinition, attribute, operand, register
from ttcodegen.ops.core.dimensions import expect_shape
from ttcodegen.ops.core.traits import Trait

# Dimension numbers of convolutions, as in StableHLO.


@dataclass(frozen=True)
class ConvolutionLayout:
    """Dimension numbers of a convolution's input, kernel and output."""

    input_batch: int
    input_feature: int
    input_spatial_dimensions: tuple[int, ...]
    kernel_output_feature: int
    kernel_input_feature: int
    kernel_spatial_dimensions: tuple[int, ...]
    output_batch: int
    output_feature: int
    output_spatial_dimensions: tuple[int, ...]

    @property
    def input_order(self) -> list[int]:
        """Dimensions in the order batch, spatial, channels."""
        return [self.input_batch, *self.input_spatial_dimensions, self.input_feature]

    @property
    def kernel_order(self) -> list[int]:
        """Dimensions in the order output channels, input channels, spatial."""
        return [
            self.kernel_output_feature,
            self.kernel_input_feature,
            *self.kernel_spatial_dimensions,
        ]

    @property
    def output_order(self) -> list[int]:
        """Dimensions in the order batch, spatial, channels."""
        return [self.output_batch, *self.output_spatial_dimensions, self.output_feature]


# Canonical form of convolutions and pools in device programs: channels last, and a matrix of
# channels for each kernel element.
#
# All other forms are rewritten to these at the end of lowering; frontends do not produce them.

WINDOW_PRODUCT = "ttir.window_product"
WINDOW_REDUCTION = "ttir.window_reduction"
ARGMAX = "argmax"
"""Pooling method that gives the row-major kernel index of the first maximum."""
METHODS = ("max", "sum", ARGMAX)


@dataclass(frozen=True)
class WindowAxis:
    """Movement of a window along a spatial dimension."""

    size: int
    """Size of the input."""
    taps: int
    """Kernel size."""
    stride: int
    before: int
    """Padding before the input; negative padding crops."""
    after: int
    spacing: int
    """Window dilation: distance between elements of a window."""
    apart: int
    """Base dilation: distance between elements of the input, with padding between them."""

    @property
    def dilated(self) -> int:
        """Size of the dilated input, without outer padding."""
        return (self.size - 1) * self.apart + 1

    @property
    def count(self) -> int:
        """Number of windows."""
        room = self.dilated + self.before + self.after - self.spacing * (self.taps - 1) - 1
        return max(0, room // self.stride + 1)

    @property
    def sees_padding(self) -> bool:
        """True if a window covers padding."""
        last = (self.count - 1) * self.stride + self.spacing * (self.taps - 1) - self.before
        return self.apart > 1 or self.before > 0 or last >= self.dilated


def window_axes(
    source: CatalogueOp | Call, sizes: Sequence[int], kernel: Sequence[int]
) -> list[WindowAxis]:
    """Returns the window axes from the attributes of a window op, or of a call of one."""
    read = source.parameter if isinstance(source, CatalogueOp) else source.__getitem__
    ones = [1] * len(sizes)
    widths: list[int] = read("padding")
    apart: list[int] = read("input_dilation") or ones
    return [
        WindowAxis(*numbers)
        for numbers in zip(
            sizes, kernel, read("stride"), widths[::2], widths[1::2], read("dilation"), apart,
            strict=True,
        )
    ]  # fmt: skip


def window_axes_of(window: Window, sizes: Sequence[int]) -> list[WindowAxis]:
    """Returns the window axes of a `Window` over spatial dimensions of these sizes."""
    return [
        WindowAxis(
            size,
            window.kernel[axis],
            window.stride[axis],
            window.padding[axis][0],
            window.padding[axis][1] + window.overhang(axis, size),
            window.dilation[axis],
            1,
        )
        for axis, size in enumerate(sizes)
    ]


def axes_of(op: CatalogueOp) -> list[WindowAxis]:
    """Returns the window axes of a window op."""
    kernel: Sequence[int] = (
        op.shape("weight")[:-2] if op.name == WINDOW_PRODUCT else op.parameter("kernel")
    )
    return window_axes(op, op.shape("input")[1:-1], kernel)


def _verify_numbers(op: CatalogueOp, rank: int) -> None:
    if not 1 <= rank <= 3:
        raise VerifyException(f"{op.name}: expected 1 to 3 dimensions of positions, found {rank}")
    for name, count in {"stride": rank, "dilation": rank, "padding": 2 * rank}.items():
        if len(op.parameter(name)) != count:
            raise VerifyException(f"{op.name}: expected {count} numbers in '{name}'")
    for name in ("stride", "dilation", "input_dilation"):
        if any(number < 1 for number in op.parameter(name) or ()):
            raise VerifyException(f"{op.name}: expected positive numbers in '{name}'")


def _verify_product(op: CatalogueOp) -> None:
    """Input (N, positions..., C), weight (kernel..., C/groups, O); the result's size follows."""
    shape, weight = op.shape("input"), op.shape("weight")
    _verify_numbers(op, len(shape) - 2)
    groups: int = op.parameter("groups")
    if len(weight) != len(shape) or groups < 1 or weight[-2] * groups != shape[-1]:
        raise VerifyException(
            f"{op.name}: a weight {weight} does not fit an input {shape} in {groups} groups"
        )
    expect_shape(op, [shape[0], *(axis.count for axis in axes_of(op)), weight[-1]])


def _verify_reduction(op: CatalogueOp) -> None:
    """Input (N, positions..., C); the result's size follows."""
    shape = op.shape("input")
    _verify_numbers(op, len(shape) - 2)
    if op.parameter("method") not in METHODS or len(op.parameter("kernel")) != len(shape) - 2:
        raise VerifyException(
            f"{op.name}: expected {' or '.join(METHODS)}, and a kernel of {len(shape) - 2} numbers"
        )
    expect_shape(op, [shape[0], *(axis.count for axis in axes_of(op)), shape[-1]])


# Numpy semantics


def _dilated(x: Array, axes: Sequence[WindowAxis], fill: float) -> Array:
    """Returns the input with its padding between, before and after the elements."""
    shape = (x.shape[0], *(axis.dilated for axis in axes), x.shape[-1])
    found = np.full(shape, fill, dtype=x.dtype)
    found[(slice(None), *(slice(None, None, axis.apart) for axis in axes))] = x
    for dim, axis in enumerate(axes, start=1):
        end = found.shape[dim] + min(axis.after, 0)
        found = found.take(range(max(-axis.before, 0), end), axis=dim)
    around = [(max(axis.before, 0), max(axis.after, 0)) for axis in axes]
    return np.pad(found, [(0, 0), *around, (0, 0)], constant_values=fill)


def _window(axes: Sequence[WindowAxis]) -> Window:
    return Window(
        tuple(axis.taps for axis in axes),
        tuple(axis.stride for axis in axes),
        ((0, 0),) * len(axes),
        tuple(axis.spacing for axis in axes),
    )


def _product(call: Call) -> Array:
    x, weight = call.array("input"), call.array("weight")
    axes = window_axes(call, x.shape[1:-1], weight.shape[:-2])
    # (O, C/groups, kernel...), as the numpy convolution takes it.
    last = weight.ndim - 1
    weight = weight.transpose([last, last - 1, *range(last - 1)])
    return convolution(_dilated(x, axes, 0.0), weight, _window(axes), call["groups"])


def _reduction(call: Call) -> Array:
    x = call.array("input")
    axes = window_axes(call, x.shape[1:-1], call["kernel"])
    combine, fill = (np.add, 0.0) if call["method"] == "sum" else (np.maximum, -np.inf)
    window, sizes = _window(axes), [axis.count for axis in axes]
    dilated = _dilated(x, axes, fill)
    places = product(*(range(axis.taps) for axis in axes))
    seen = (taps(dilated, window, sizes, place) for place in places)
    if call["method"] == ARGMAX:
        return _index_of_maximum(list(seen))
    return reduce(combine, seen)


def _index_of_maximum(seen: Sequence[Array]) -> Array:
    """Returns the index of the first maximum as the kernel computes it.

    Comparisons with NaN are false: from a NaN on, every further element replaces the index.
    """
    greatest = np.full_like(seen[0], -np.inf)
    place = np.zeros(greatest.shape, np.float32)
    for index, element in enumerate(seen):
        place[~(element <= greatest)] = index
        greatest = np.maximum(greatest, element)
    return place


# Equivalent TTIR ops of frontends


def _as_convolution(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    last = len(op.result_shape) - 1
    spatial = tuple(range(1, last))
    layout = ConvolutionLayout(
        0, last, spatial, last, last - 1, tuple(range(last - 1)), 0, last, spatial
    )
    return builder.emit(
        "convolution",
        [builder.operand(op, "input"), builder.operand(op, "weight"), None],
        op.result_type,
        window_strides=op.parameter("stride"),
        padding=op.parameter("padding"),
        input_dilation=op.parameter("input_dilation"),
        weight_dilation=op.parameter("dilation"),
        convolution_layout=layout,
        feature_group_count=op.parameter("groups"),
    )


def _as_pooling(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    if op.parameter("method") == ARGMAX:
        raise VerifyException(f"{op.name}: only programs of the device compute '{ARGMAX}'")

    def whole(name: str) -> list[int]:
        return [1, *op.parameter(name), 1]

    return builder.emit(
        "pooling",
        [[builder.operand(op, "input")]],
        op.result_type,
        pooling_method=op.parameter("method"),
        window_dimensions=whole("kernel"),
        window_strides=whole("stride"),
        window_dilations=whole("dilation"),
        base_dilations=[1, *(op.parameter("input_dilation") or [1] * len(op.parameter("kernel"))),
                        1],
        padding=[0, 0, *op.parameter("padding"), 0, 0],
    )  # fmt: skip


def _fan_in(op: CatalogueOp) -> int:
    """Returns the products per element of the result."""
    return prod(op.shape("weight")[:-1])


_NUMBERS = (
    attribute("stride", INTEGERS),
    attribute("padding", INTEGERS),
    attribute("dilation", INTEGERS),
    attribute("input_dilation", INTEGERS, None),
)

register(
    TTIRDefinition(
        WINDOW_PRODUCT,
        (operand("input"), operand("weight", input_kind="weight", fan_in=_fan_in)),
        (*_NUMBERS, attribute("groups", INTEGER, 1)),
        verify=_verify_product,
        numpy=_product,
        decompose=_as_convolution,
        matrix_engine=True,
        traits=Trait.OWN_NAN_IN_TILES,
        nouns=("convolution",),
    )
)
register(
    TTIRDefinition(
        WINDOW_REDUCTION,
        (operand("input"),),
        (*_NUMBERS, attribute("kernel", INTEGERS), attribute("method", STRING)),
        verify=_verify_reduction,
        numpy=_reduction,
        decompose=_as_pooling,
        nouns=("pooled",),
    )
)


# Construction


@dataclass(frozen=True)
class Convolved:
    """Operands of a convolution in canonical order.

    Args:
        image: (N, positions..., C).
        weight: (O, C/groups, kernel...).
        bias: O elements, or None.
        axes: Window axes of the spatial dimensions.
        groups: Number of channel groups.
        element: Element type of the result.
    """

    image: SSAValue
    weight: SSAValue
    bias: SSAValue | None
    axes: Sequence[WindowAxis]
    groups: int
    element: Attribute

    @property
    def shape(self) -> list[int]:
        """Shape of the result."""
        outputs = shape_of(self.weight.type)[0]
        return [shape_of(self.image.type)[0], *(axis.count for axis in self.axes), outputs]


def convolved(builder: OpBuilder, source: Convolved) -> SSAValue:
    """Emits a convolution: a matmul for 1x1 kernels with unit stride, else a matmul of windows."""
    rank = len(source.axes)
    weight = builder.permute(source.weight, [*range(2, rank + 2), 1, 0])
    result = TensorType(source.element, source.shape)
    if source.groups == 1 and all(_is_every_element(axis) for axis in source.axes):
        matrix = builder.reshape(weight, shape_of(weight.type)[-2:])
        value = builder.emit("matmul", [source.image, matrix], result)
    else:
        weight, groups = _in_whole_tiles(builder, weight, source.groups)
        value = builder.emit(
            "window_product",
            [source.image, weight],
            result,
            groups=groups,
            **_numbers(source.axes),
        )
    if source.bias is None:
        return value
    bias = builder.reshape(source.bias, [1] * (rank + 1) + [source.shape[-1]])
    return builder.broadcasting("add", value, builder.typecast(bias, source.element))


def pooled(
    builder: OpBuilder, image: SSAValue, axes: Sequence[WindowAxis], method: str, element: Attribute
) -> SSAValue:
    """Emits a window reduction (max, argmax or sum) of (N, positions..., C)."""
    images, *_, channels = shape_of(image.type)
    result = TensorType(element, [images, *(axis.count for axis in axes), channels])
    kernel = [axis.taps for axis in axes]
    return builder.emit(
        "window_reduction", [image], result, kernel=kernel, method=method, **_numbers(axes)
    )


def _is_every_element(axis: WindowAxis) -> bool:
    return axis.taps == axis.stride == 1 and axis.count == axis.size and not axis.sees_padding


def _numbers(axes: Sequence[WindowAxis]) -> dict[str, list[int] | None]:
    apart = [axis.apart for axis in axes]
    return {
        "stride": [axis.stride for axis in axes],
        "padding": [width for axis in axes for width in (axis.before, axis.after)],
        "dilation": [axis.spacing for axis in axes],
        "input_dilation": apart if any(step != 1 for step in apart) else None,
    }


def _in_whole_tiles(builder: OpBuilder, weight: SSAValue, groups: int) -> tuple[SSAValue, int]:
    """Merges channel groups until each has whole tiles of input and output channels.

    The weight is (kernel..., C/groups, O). Entries that cross the original groups are zero. Returns
    the weight and the number of groups.
    """
    *kernel, inner, outputs = shape_of(weight.type)
    together = next(
        n
        for n in range(1, groups + 1)
        if n == groups
        or (groups % n == 0 and inner * n % TILE_SIDE == 0 == outputs // groups * n % TILE_SIDE)
    )
    if together == 1:
        return weight, groups
    weight = builder.repeat(weight, [*kernel, inner * together, outputs])
    rows = np.arange(inner * together)[:, None] // inner
    columns = np.arange(outputs)[None] // (outputs // groups) % together
    shape = [1] * len(kernel) + [inner * together, outputs]
    own = builder.constant((rows == columns).astype(np.float32).reshape(shape))
    element = element_of(weight.type)
    zero = builder.full([1] * len(shape), 0.0, element)
    own = builder.typecast(own, element)
    return builder.broadcasting("where", own, weight, zero, element=element), groups // together
