"""StableHLO's convolution, decomposed to conv1d, conv2d and conv3d.

Its attributes are those of StableHLO's op of that name
(https://openxla.org/stablehlo/spec#convolution). The decomposition is a convolution of an image,
sequence or volume with the channels last.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.dialects.operations.attribute_kinds import (
    BOOLEANS,
    INTEGER,
    INTEGERS,
    STRING,
    AttributeKind,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.convolution.convolution import expect_bias, with_bias
from ttcodegen.ops.convolution.device_windows import ConvolutionLayout
from ttcodegen.ops.convolution.sliding_window import Window, convolution, surrounded
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import (
    Call,
    TTIRDefinition,
    attribute,
    operand,
    optional,
    register,
)
from ttcodegen.ops.core.dimensions import Dimensions, Labels, expect_shape
from ttcodegen.ops.core.traits import Trait

if TYPE_CHECKING:
    import numpy


_LISTS = tuple(f"{name}_spatial_dimensions" for name in ("input", "kernel", "output"))
_NUMBERS = (
    "input_batch",
    "input_feature",
    "kernel_output_feature",
    "kernel_input_feature",
    "output_batch",
    "output_feature",
)


def _decode_layout(value: Attribute) -> ConvolutionLayout:
    """Reads `#ttir<convolution_layout input_batch = 0, input_spatial_dimensions = 2x3, ...>`."""
    found: dict[str, str] = dict(re.findall(r"\"?(\w+)\"?\s*=\s*\"?(\d+(?:x\d+)*)?", str(value)))
    fields: dict[str, Any] = {name: int(found[name]) for name in _NUMBERS}
    for name in _LISTS:
        fields[name] = tuple(int(dim) for dim in found[name].split("x") if dim)
    return ConvolutionLayout(**fields)


def _encode_layout(value: ConvolutionLayout) -> Attribute:
    from xdsl.dialects.builtin import DictionaryAttr

    fields = {name: INTEGER.encode(getattr(value, name)) for name in _NUMBERS}
    for name in _LISTS:
        fields[name] = STRING.encode("x".join(map(str, getattr(value, name))))
    return DictionaryAttr(fields)


CONVOLUTION_LAYOUT = AttributeKind[ConvolutionLayout](
    "the dimensions of a convolution", _decode_layout, _encode_layout
)


@dataclass(frozen=True)
class _Form:
    """Convolution in canonical order.

    Input (N, positions..., C), kernel (O, C/groups, positions...), output (N, positions..., O).
    """

    layout: ConvolutionLayout
    shape: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    """Padding of the input; negative padding crops."""
    input_dilation: tuple[int, ...]
    dilation: tuple[int, ...]
    reversal: tuple[bool, ...]
    groups: int
    batch_groups: int

    @staticmethod
    def of(source: CatalogueOp | Call, shape: Sequence[int], kernel: Sequence[int]) -> _Form:
        read = source.parameter if isinstance(source, CatalogueOp) else source.__getitem__
        layout: ConvolutionLayout = read("convolution_layout")
        rank = len(layout.input_spatial_dimensions)
        widths: list[int] = read("padding") or [0] * (2 * rank)
        return _Form(
            layout,
            tuple(shape[dim] for dim in layout.input_order),
            tuple(kernel[dim] for dim in layout.kernel_order),
            tuple(read("window_strides") or [1] * rank),
            tuple(zip(widths[::2], widths[1::2], strict=True)),
            tuple(read("input_dilation") or [1] * rank),
            tuple(read("weight_dilation") or [1] * rank),
            tuple(read("window_reversal") or [False] * rank),
            read("feature_group_count"),
            read("batch_group_count"),
        )

    @property
    def rank(self) -> int:
        """Number of spatial dimensions."""
        return len(self.strides)

    @property
    def dilated(self) -> tuple[int, ...]:
        """Sizes of the input after base dilation."""
        return tuple(
            (size - 1) * step + 1 if size else 0
            for size, step in zip(self.shape[1:-1], self.input_dilation, strict=True)
        )

    @property
    def output(self) -> tuple[int, ...]:
        """Shape of the result."""
        sizes = tuple(
            max(0, (size + sum(pair) - step * (taps - 1) - 1) // stride + 1)
            for size, pair, taps, step, stride in zip(
                self.dilated,
                self.padding,
                self.kernel[2:],
                self.dilation,
                self.strides,
                strict=True,
            )
        )
        return (self.shape[0] // self.batch_groups, *sizes, self.kernel[0])


_PER_DIMENSION = ("window_strides", "input_dilation", "weight_dilation", "window_reversal")


def _verify(op: CatalogueOp) -> None:
    """Input, kernel and result have the dimensions of `convolution_layout`; the size of the result
    follows.
    """
    layout: ConvolutionLayout = op.parameter("convolution_layout")
    rank = len(layout.input_spatial_dimensions)
    orders = (layout.input_order, layout.kernel_order, layout.output_order)
    shapes = (op.shape("input"), op.shape("weight"), op.result_shape)
    for order, shape in zip(orders, shapes, strict=True):
        if sorted(order) != list(range(rank + 2)) or len(shape) != rank + 2:
            raise VerifyException(
                f"{op.name}: the dimensions {tuple(order)} are not those of the shape {shape}"
            )
    if not 1 <= rank <= 3:
        raise VerifyException(f"{op.name}: expected 1 to 3 spatial dimensions, found {rank}")
    counts = {name: rank for name in _PER_DIMENSION} | {"padding": 2 * rank}
    for name, count in counts.items():
        values = op.parameter(name)
        if values is not None and len(values) != count:
            raise VerifyException(f"{op.name}: expected {count} values in '{name}', found {values}")
    form = _Form.of(op, op.shape("input"), op.shape("weight"))
    if min(*form.strides, *form.input_dilation, *form.dilation, *form.kernel) < 1:
        raise VerifyException(f"{op.name}: strides, dilations and the kernel must be positive")
    channels, (outputs, per_group) = form.shape[-1], form.kernel[:2]
    groups, batches = form.groups, form.batch_groups
    divides = (
        min(groups, batches) == 1
        and channels == per_group * groups
        and outputs % (groups * batches) == 0
        and form.shape[0] % batches == 0
    )
    if not divides:
        raise VerifyException(
            f"{op.name}: {form.shape[0]} images of {channels} channels and a weight of {outputs} "
            f"by {per_group} channels do not divide into {groups} groups of channels and "
            f"{batches} of images"
        )
    expect_bias(op, outputs)
    expected = form.output
    expect_shape(op, [expected[layout.output_order.index(axis)] for axis in range(rank + 2)])


def _meaning(call: Call) -> numpy.ndarray:
    form = _Form.of(call, call.array("input").shape, call.array("weight").shape)
    x = call.array("input").transpose(form.layout.input_order)
    weight = call.array("weight").transpose(form.layout.kernel_order)
    dilated = np.zeros((x.shape[0], *form.dilated, x.shape[-1]), dtype=x.dtype)
    dilated[(slice(None), *(slice(None, None, step) for step in form.input_dilation))] = x
    for axis, (before, after) in enumerate(form.padding, start=1):
        end = dilated.shape[axis] + min(after, 0)
        dilated = dilated.take(range(max(-before, 0), end), axis=axis)
    around = [(max(before, 0), max(after, 0)) for before, after in form.padding]
    dilated = np.pad(dilated, [(0, 0), *around, (0, 0)])
    flipped = tuple(axis + 2 for axis, flip in enumerate(form.reversal) if flip)
    weight: numpy.ndarray = np.flip(weight, flipped)
    window = Window(weight.shape[2:], form.strides, ((0, 0),) * form.rank, form.dilation)
    outputs = weight.shape[0] // form.batch_groups
    parts = [
        convolution(images, weight[group * outputs :][:outputs], window, form.groups)
        for group, images in enumerate(np.split(dilated, form.batch_groups))
    ]
    result = with_bias(call, np.concatenate(parts, axis=-1))
    return result.transpose(np.argsort(form.layout.output_order))


# The decomposition


def _decompose(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Rewrites to conv2d, conv_transpose2d or conv3d.

    Dimension order, reversal, batch groups, input dilation and negative padding are applied to the
    operands before the convolution.
    """
    form = _Form.of(op, op.shape("input"), op.shape("weight"))
    if prod(op.result_shape) == 0:
        return builder.full(op.result_shape, 0.0, element_of(op.result_type))
    value = builder.permute(builder.operand(op, "input"), form.layout.input_order)
    weight = builder.permute(builder.operand(op, "weight"), form.layout.kernel_order)
    groups = form.groups
    if form.batch_groups > 1:
        value, groups = _images_as_channels(builder, form, value), form.batch_groups
    bias = builder.optional(op, "bias")
    if bias is not None:
        bias = builder.reshape(bias, [1, 1, 1, form.kernel[0]])
    result = _transposed(builder, op, form, [value, weight, bias], groups)
    if result is None:
        flipped = [axis + 2 for axis, flip in enumerate(form.reversal) if flip]
        result = _direct(
            builder, op, form, [value, _reversed(builder, weight, flipped), bias], groups
        )
    order = form.layout.output_order
    return builder.permute(result, [order.index(axis) for axis in range(len(order))])


def _reversed(builder: OpBuilder, value: SSAValue, dims: Sequence[int]) -> SSAValue:
    moving = [dim for dim in dims if shape_of(value.type)[dim] > 1]
    return builder.like("reverse", value, dimensions=moving) if moving else value


def _images_as_channels(builder: OpBuilder, form: _Form, value: SSAValue) -> SSAValue:
    """Reshapes (groups * N, positions..., C) to (N, positions..., groups * C)."""
    images, *sizes, channels = form.shape
    count = form.batch_groups
    value = builder.reshape(value, [count, images // count, *sizes, channels])
    last = len(sizes) + 2
    value = builder.permute(value, [*range(1, last), 0, last])
    return builder.reshape(value, [images // count, *sizes, count * channels])


def _transposed(
    builder: OpBuilder,
    op: CatalogueOp,
    form: _Form,
    operands: Sequence[SSAValue | None],
    groups: int,
) -> SSAValue | None:
    """Emits a conv_transpose2d for an input-dilated 2D convolution of unit stride.

    None if the form is another, or would need negative padding.
    """
    value, weight, bias = operands
    assert value is not None
    assert weight is not None
    reach = [d * (k - 1) for d, k in zip(form.dilation, form.kernel[2:], strict=True)]
    padding = [
        (width - before, width - after)
        for width, (before, after) in zip(reach, form.padding, strict=True)
    ]
    fits = min(min(pair) for pair in padding) >= 0
    if form.rank != 2 or set(form.strides) != {1} or set(form.input_dilation) == {1} or not fits:
        return None
    flipped = [axis + 2 for axis, flip in enumerate(form.reversal) if not flip]
    weight = _reversed(builder, weight, flipped)
    outputs, per_group, height, width = shape_of(weight.type)
    # (O, C/groups, ...) as (C, O/groups, ...)
    weight = builder.reshape(weight, [groups, outputs // groups, per_group, height, width])
    weight = builder.permute(weight, [0, 2, 1, 3, 4])
    weight = builder.reshape(weight, [groups * per_group, outputs // groups, height, width])
    (top, bottom), (left, right) = padding
    return builder.emit(
        "conv_transpose2d",
        [value, weight, bias],
        TensorType(element_of(op.result_type), form.output),
        stride=list(form.input_dilation),
        padding=[top, left, bottom, right],
        dilation=list(form.dilation),
        groups=groups,
    )


def _direct(
    builder: OpBuilder,
    op: CatalogueOp,
    form: _Form,
    operands: Sequence[SSAValue | None],
    groups: int,
) -> SSAValue:
    """Emits a convolution of the explicitly dilated and cropped input."""
    value, weight, bias = operands
    assert value is not None
    assert weight is not None
    value = _with_zeros_between(builder, value, 1, form.input_dilation)
    sizes = shape_of(value.type)[1:-1]
    begins = [max(-before, 0) for before, _ in form.padding]
    ends = [size + min(after, 0) for size, (_, after) in zip(sizes, form.padding, strict=True)]
    images, channels = shape_of(value.type)[0], shape_of(value.type)[-1]
    value = builder.slice(value, [0, *begins, 0], [images, *ends, channels])
    widths = [(max(before, 0), max(after, 0)) for before, after in form.padding]
    strides, dilation = list(form.strides), list(form.dilation)
    output = list(form.output)
    element = element_of(op.result_type)
    if form.rank == 3:
        value = surrounded(builder, value, [(0, 0), *widths, (0, 0)])
        weight = _with_zeros_between(builder, weight, 2, form.dilation)
        return builder.emit(
            "conv3d",
            [value, weight, bias],
            TensorType(element, output),
            stride=strides,
            padding=[0, 0, 0],
            groups=groups,
        )
    if form.rank == 1:
        # A sequence is an image of width 1.
        value = builder.reshape(value, [images, *shape_of(value.type)[1:-1], 1, channels])
        weight = builder.reshape(weight, [*shape_of(weight.type), 1])
        widths, strides, dilation = [*widths, (0, 0)], [*strides, 1], [*dilation, 1]
    image = [output[0], *output[1:-1], *([1] if form.rank == 1 else []), output[-1]]
    (top, bottom), (left, right) = widths
    result = builder.emit(
        "conv2d",
        [value, weight, bias],
        TensorType(element, image),
        stride=strides,
        padding=[top, left, bottom, right],
        dilation=dilation,
        groups=groups,
    )
    return builder.reshape(result, output)


def _with_zeros_between(
    builder: OpBuilder, value: SSAValue, first: int, steps: Sequence[int]
) -> SSAValue:
    """Inserts zeros between the elements of the dimensions from `first` on."""
    for dim, step in enumerate(steps, start=first):
        shape = list(shape_of(value.type))
        if step == 1 or shape[dim] == 1:
            continue
        before, size, after = prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :])
        value = builder.reshape(value, [before, size, 1, after])
        value = surrounded(builder, value, [(0, 0), (0, 0), (0, step - 1), (0, 0)])
        value = builder.reshape(value, [*shape[:dim], size * step, *shape[dim + 1 :]])
        value = builder.slice_dim(value, dim, 0, (size - 1) * step + 1)
    return value


def _images_and_features(op: CatalogueOp) -> Dimensions | None:
    """Labels: images and, without groups, features can be sharded.

    Shards of input features give partial sums. No labels with a bias, which each device would add.
    """
    if op.parameter("batch_group_count") != 1 or op.optional_operand("bias") is not None:
        return None
    layout: ConvolutionLayout = op.parameter("convolution_layout")
    apart = op.parameter("feature_group_count") == 1

    def labels(rank: int, label_of: dict[int, int]) -> Labels:
        return tuple([label_of.get(dim) for dim in range(rank)])

    rank = len(op.result_shape)
    if not apart:
        image = labels(rank, {layout.input_batch: 0})
        return Dimensions([image, (None,) * rank], [labels(rank, {layout.output_batch: 0})])
    image = labels(rank, {layout.input_batch: 0, layout.input_feature: 2})
    kernel = labels(rank, {layout.kernel_output_feature: 1, layout.kernel_input_feature: 2})
    result = labels(rank, {layout.output_batch: 0, layout.output_feature: 1})
    return Dimensions([image, kernel], [result], {2: "sum"})


def _fan_in(op: CatalogueOp) -> int:
    """Returns the products per element of the result."""
    shape = op.shape("weight")
    layout: ConvolutionLayout = op.parameter("convolution_layout")
    return prod(shape) // max(shape[layout.kernel_output_feature], 1)


register(
    TTIRDefinition(
        "ttir.convolution",
        (
            operand("input"),
            operand("weight", input_kind="weight", fan_in=_fan_in),
            optional("bias", input_kind="weight"),
        ),
        (
            attribute("window_strides", INTEGERS, None),
            attribute("padding", INTEGERS, None),
            attribute("input_dilation", INTEGERS, None),
            attribute("weight_dilation", INTEGERS, None),
            attribute("window_reversal", BOOLEANS, None),
            attribute("convolution_layout", CONVOLUTION_LAYOUT),
            attribute("feature_group_count", INTEGER, 1),
            attribute("batch_group_count", INTEGER, 1),
        ),
        verify=_verify,
        dimensions=_images_and_features,
        numpy=_meaning,
        decompose=_decompose,
        traits=Trait.OWN_NAN_IN_TILES,
    )
)
