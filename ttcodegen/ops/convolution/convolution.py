"""Convolution and transposed convolution of images and sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.dialects.operations.attribute_kinds import INTEGER, INTEGERS
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.convolution.device_windows import (
    Convolved,
    WindowAxis,
    convolved,
    window_axes_of,
)
from ttcodegen.ops.convolution.sliding_window import (
    FLATTENED_ATTRIBUTE,
    IMAGE_DIMS,
    Window,
    as_rows,
    convolution,
    expect_image,
    from_rows,
    image_of,
    image_order,
    image_shape,
    library_padding,
    per_dimension,
    transposed_convolution,
    window_attributes,
    window_on_cpu,
)
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import (
    AttributeSpec,
    Call,
    TTIRDefinition,
    attribute,
    operand,
    optional,
    register,
)
from ttcodegen.ops.core.dimensions import Dimensions, Labels, expect_shape
from ttcodegen.ops.core.lowering import cpu_call
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.movement.data_movement import (
    inverse_permutation,
    is_mostly_padding,
    permuted,
)

if TYPE_CHECKING:
    import numpy


# conv2d, conv_transpose2d, and checks shared by all convolutions.


def _fan_in(op: CatalogueOp) -> int:
    """Returns the products per element of the result (for stride 1, if transposed)."""
    shape = op.shape("weight")
    if "transpose" in op.name:
        return shape[0] // op.parameter("groups") * prod(shape[2:])
    return prod(shape[1:])


CONVOLUTION_OPERANDS = (
    operand("input"),
    operand("weight", input_kind="weight", fan_in=_fan_in),
    optional("bias", input_kind="weight"),
)
GROUPS = attribute("groups", INTEGER, 1)

# Shared checks of the verifiers


def expect_channels(op: CatalogueOp, channels: int, outputs: int, weight: Sequence[int]) -> None:
    """Raises VerifyException unless weight, bias and groups match the channels.

    `weight` are the expected dimensions of the weight before its kernel.
    """
    expect_weight(op, channels, outputs, weight)
    expect_bias(op, outputs)


def expect_weight(op: CatalogueOp, channels: int, outputs: int, weight: Sequence[int]) -> None:
    """Raises VerifyException unless weight and groups match the channels.

    `weight` are the expected dimensions of the weight before its kernel.
    """
    groups = expect_groups(op, channels, outputs)
    found = op.shape("weight")
    if found[:2] != tuple(weight):
        raise VerifyException(
            f"{op.name}: expected a weight of {weight[0]}x{weight[1]} channels for {channels} "
            f"input channels in {groups} groups and {outputs} output channels, found {found}"
        )


def expect_groups(op: CatalogueOp, channels: int, outputs: int) -> int:
    """Returns the number of groups; raises VerifyException if it does not divide the channels."""
    groups: int = op.parameter("groups")
    if groups < 1 or channels % groups or outputs % groups:
        raise VerifyException(
            f"{op.name}: {channels} input and {outputs} output channels do not divide into "
            f"{groups} groups"
        )
    return groups


def expect_bias(op: CatalogueOp, outputs: int) -> None:
    """Raises VerifyException unless a bias, if any, has one element per output in one dimension."""
    bias = op.optional_operand("bias")
    if bias is None:
        return
    # The outputs may be in any dimension, if all others have size 1.
    if [size for size in shape_of(bias.type) if size != 1] != [outputs] * (outputs != 1):
        raise VerifyException(
            f"{op.name}: expected a bias of {outputs} elements in one dimension, found "
            f"{shape_of(bias.type)}"
        )


def kernel_of(op: CatalogueOp, rank: int) -> tuple[int, ...]:
    """Returns the kernel size; raises VerifyException if the weight has another rank."""
    shape = op.shape("weight")
    if len(shape) != rank + 2:
        raise VerifyException(f"{op.name}: expected a weight of rank {rank + 2}, found {shape}")
    return shape[2:]


def output_channels(op: CatalogueOp, order: Sequence[int]) -> int:
    """Returns the channels of the result; `order` are its dimensions, channels last."""
    if len(op.result_shape) != len(order):
        raise VerifyException(
            f"{op.name}: expected a result of rank {len(order)}, found {op.result_shape}"
        )
    return op.result_shape[order[-1]]


def dims(op: CatalogueOp, specs: Sequence[AttributeSpec]) -> list[int]:
    """Returns the order of the input dimensions from the attributes.

    Raises VerifyException if they are no permutation or the input has another rank.
    """
    order = [op.parameter(spec.name) for spec in specs]
    if sorted(order) != list(range(len(specs))):
        names = ", ".join(spec.name for spec in specs)
        raise VerifyException(
            f"{op.name}: {names} must be 0 to {len(specs) - 1} in some order, found {tuple(order)}"
        )
    if len(op.shape("input")) != len(specs):
        raise VerifyException(
            f"{op.name}: expected an input of rank {len(specs)}, found {op.shape('input')}"
        )
    return order


def _verify_conv2d(op: CatalogueOp) -> None:
    """Weight (Co, Ci/groups, kernel height, kernel width); the result's size follows."""
    order = image_order(op)
    n, h, w, channels = image_shape(op, order)
    outputs = output_channels(op, order)
    window = Window.of(op, kernel_of(op, 2))
    expect_channels(op, channels, outputs, (outputs, channels // max(op.parameter("groups"), 1)))
    height, width = window.output_sizes(op, (h, w))
    expect_image(op, (n, height, width, outputs), order)


# conv2d


def _from_image(image: numpy.ndarray, call: Call, order: Sequence[int]) -> numpy.ndarray:
    if call[FLATTENED_ATTRIBUTE.name] is not None:
        return image.reshape(call.results[0].shape)
    return np.transpose(image, np.argsort(order))


def _call_order(call: Call) -> list[int]:
    return [call[spec.name] for spec in IMAGE_DIMS]


def _images_and_channels(op: CatalogueOp) -> Dimensions | None:
    """Labels: images and, without groups, output channels can be sharded."""
    if op.parameter(FLATTENED_ATTRIBUTE.name) is not None:
        return None
    apart = op.parameter("groups") == 1
    batch, _, _, channels = image_order(op)
    image: list[int | None] = [None] * 4
    result: list[int | None] = [None] * 4
    image[batch] = result[batch] = 0
    output = 1 if apart else None
    result[channels] = output
    labels: list[Labels] = [tuple(image), (output, None, None, None)]
    bias = op.optional_operand("bias")
    if bias is not None:
        shape = shape_of(bias.type)
        labels.append(tuple([output if size == op.shape("weight")[0] else None for size in shape]))
        if apart and labels[-1].count(1) != 1:
            return None
    return Dimensions(labels, [tuple(result)])


def _convolution_on_cpu(op: CatalogueOp) -> dict[str, Any]:
    """Returns the fields of `cpu::Convolution`."""
    window = Window.of(op, op.shape("weight")[2:])
    order = image_order(op)
    flattened = op.parameter(FLATTENED_ATTRIBUTE.name) is not None
    transposed = op.name == "ttir.conv_transpose2d"
    extra = per_dimension(op, "output_padding", 2) if transposed else []
    groups = op.parameter("groups")
    return {
        **window_on_cpu(window),
        "output_padding": extra if any(extra) else None,
        "groups": groups if groups != 1 else None,
        "order": order if order != sorted(order) else None,
        "rows": list(image_shape(op)) if flattened else None,
    }


def with_bias(call: Call, result: numpy.ndarray) -> numpy.ndarray:
    """Adds the bias, if any, to a result with channels last."""
    bias = call.optional("bias")
    return result if bias is None else result + bias.reshape(-1)


def _conv2d(call: Call) -> numpy.ndarray:
    order = _call_order(call)
    weight = call.array("weight")
    window = Window.of(call, weight.shape[2:])
    result = convolution(image_of(call, order), weight, window, call["groups"])
    return _from_image(with_bias(call, result), call, order)


def library_bias(builder: OpBuilder, op: CatalogueOp, outputs: int) -> SSAValue | None:
    bias = builder.optional(op, "bias")
    return None if bias is None else builder.reshape(bias, [1, 1, 1, outputs])


def _rows_of_image(builder: OpBuilder, value: SSAValue, order: Sequence[int]) -> SSAValue:
    """Converts an image to rows of channels.

    The rows are row-major where tiles would be mostly padding and the image is not tiled yet.
    """
    value = permuted(builder, value, order)
    n, h, w, c = shape_of(value.type)
    shape, owner = [1, 1, n * h * w, c], value.owner
    in_rows = not isinstance(owner, CatalogueOp) or owner.name == "ttnn.permute_row_major"
    given = [n, h, w, c] == shape
    if given or not in_rows or not is_mostly_padding(value, shape):
        return builder.reshape(value, shape)
    result = TensorType(element_of(value.type), shape)
    return builder.emit("reshape_row_major", [value], result, shape=shape)


_DEPTHWISE_WEIGHTS = 4608
"""Weights of channels that one call convolves by themselves in an image of one row: a core has all
of them in L1 (measured on mocked devices: 1536 channels with kernels of 3 elements fit on each; on
a blackhole, 2048 with 3 and 1024 with 7 do not)."""
_DEPTHWISE_CHANNELS = 2048
"""Maximum number of channels of such a call."""


def _channels_at_once(op: CatalogueOp, window: Window, height: int, channels: int) -> int:
    """Returns the channels per call: all of them, except for depthwise images of height 1."""
    is_depthwise = op.parameter("groups") == channels and op.name == "ttir.conv2d"
    if not is_depthwise or height > 1 or window.kernel[0] > 1:
        return channels
    at_once = _DEPTHWISE_CHANNELS
    while at_once * window.kernel[1] > _DEPTHWISE_WEIGHTS:
        at_once //= 2
    return at_once


def _library_rows(
    builder: OpBuilder, op: CatalogueOp, window: Window, positions: int, **attributes: Any
) -> SSAValue:
    """Emits the library's convolution as rows of channels, `positions` rows per image."""
    order = image_order(op)
    n, h, w, channels = image_shape(op, order)
    outputs = output_channels(op, order)
    image = builder.operand(op, "input")
    is_ordinary = op.name == "ttir.conv2d"
    rows = _rows_of_image(builder, image, order) if is_ordinary else as_rows(builder, image, order)
    weight, bias = builder.operand(op, "weight"), library_bias(builder, op, outputs)
    element = element_of(op.result_type)
    at_once = _channels_at_once(op, window, h, channels)
    parts: list[SSAValue] = []
    # At least one part, even for an image without channels.
    for first in range(0, max(channels, 1), max(at_once, 1)):
        taken = min(at_once, channels - first)
        made, groups = [0, outputs], op.parameter("groups")
        if taken < channels:
            made = [count * outputs // channels for count in (first, first + taken)]
            groups = taken
        part = builder.emit(
            op.definition.short_name,
            [
                _part(builder, rows, -1, first, first + taken),
                _part(builder, weight, 0, *made) if is_ordinary else weight,
                None if bias is None else _part(builder, bias, -1, *made),
            ],
            TensorType(element, [1, 1, n * positions, made[1] - made[0]]),
            in_channels=taken,
            out_channels=made[1] - made[0],
            batch_size=n,
            input_height=h,
            input_width=w,
            kernel_size=list(window.kernel),
            stride=list(window.stride),
            padding=library_padding(window),
            dilation=list(window.dilation),
            groups=groups,
            **attributes,
        )
        parts.append(part)
    if len(parts) == 1:
        return parts[0]
    whole = TensorType(element, [1, 1, n * positions, outputs])
    return builder.emit("concat", [parts], whole, dim=3)


def _part(builder: OpBuilder, value: SSAValue, axis: int, begin: int, end: int) -> SSAValue:
    """Slices a tensor along an axis; returns it unchanged if the slice is all of it."""
    shape = list(shape_of(value.type))
    if (begin, end) == (0, shape[axis]):
        return value
    begins, ends = [0] * len(shape), shape
    begins[axis], ends[axis] = begin, end
    return builder.slice(value, begins, ends)


def _lower_conv2d(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Converts the image to rows of channels, and the library's rows back to an image."""
    order = image_order(op)
    window = Window.of(op, kernel_of(op, 2))
    sizes = window.output_sizes(op, image_shape(op, order)[1:3])
    rows = _library_rows(builder, op, window, prod(sizes))
    return from_rows(builder, rows, op.result_shape, order)


def is_of_floats(op: CatalogueOp) -> bool:
    """True if all operands are floats, which the engines of a core compute with."""
    return all(declared_data_type(value).is_float for value in op.operands)


def image_program(
    builder: OpBuilder, op: CatalogueOp, weight: SSAValue, axes: Sequence[WindowAxis]
) -> SSAValue:
    """Convolution of an image as a matmul of windows, with a weight (Co, Ci/groups, kernel)."""
    order = image_order(op)
    image = builder.permute(builder.operand(op, "input"), order)
    source = Convolved(
        builder.reshape(image, image_shape(op, order)),
        weight,
        builder.optional(op, "bias"),
        axes,
        op.parameter("groups"),
        element_of(op.result_type),
    )
    return from_rows(builder, convolved(builder, source), op.result_shape, order)


def _conv2d_program(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    if not is_of_floats(op):
        return None
    sizes = image_shape(op, image_order(op))[1:3]
    axes = window_axes_of(Window.of(op, kernel_of(op, 2)), sizes)
    return image_program(builder, op, builder.operand(op, "weight"), axes)


register(
    TTIRDefinition(
        "ttir.conv2d",
        CONVOLUTION_OPERANDS,
        (*window_attributes(), GROUPS, *IMAGE_DIMS, FLATTENED_ATTRIBUTE),
        verify=_verify_conv2d,
        dimensions=_images_and_channels,
        numpy=_conv2d,
        program=_conv2d_program,
        lower=_lower_conv2d,
        traits=Trait.OWN_NAN_IN_TILES,
        cpu=cpu_call("convolution", _convolution_on_cpu, function="convolution"),
    )
)


# conv_transpose2d


def transposed_sizes(window: Window, op: CatalogueOp, sizes: Sequence[int]) -> tuple[int, ...]:
    extra = per_dimension(op, "output_padding", len(sizes))
    found = tuple(
        (size - 1) * window.stride[axis]
        + window.reach(axis)
        + extra[axis]
        - sum(window.padding[axis])
        for axis, size in enumerate(sizes)
    )
    if any(size < 1 for size in found) or any(size < 0 for size in extra):
        raise VerifyException(
            f"{op.name}: padding {window.padding} and output padding {tuple(extra)} leave a result "
            f"of size {found}"
        )
    return found


def _verify_conv_transpose2d(op: CatalogueOp) -> None:
    """Weight (Ci, Co/groups, kernel height, kernel width); the result's size follows."""
    order = image_order(op)
    n, h, w, channels = image_shape(op, order)
    outputs = output_channels(op, order)
    window = Window.of(op, kernel_of(op, 2))
    expect_channels(op, channels, outputs, (channels, outputs // max(op.parameter("groups"), 1)))
    height, width = transposed_sizes(window, op, (h, w))
    expect_image(op, (n, height, width, outputs), order)


def _conv_transpose2d(call: Call) -> numpy.ndarray:
    order = _call_order(call)
    weight = call.array("weight")
    result = transposed_convolution(
        image_of(call, order),
        weight,
        Window.of(call, weight.shape[2:]),
        per_dimension(call, "output_padding", 2),
        call["groups"],
    )
    return _from_image(with_bias(call, result), call, order)


def _lower_conv_transpose2d(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Lowers to the call; padding beyond the kernel reach crops the result instead.

    The library pads the input by reach - 1 - padding, which must not be negative.
    """
    order = image_order(op)
    n, h, w, _ = image_shape(op, order)
    window = Window.of(op, kernel_of(op, 2))
    taken = tuple(
        (min(before, window.reach(axis) - 1), min(after, window.reach(axis) - 1))
        for axis, (before, after) in enumerate(window.padding)
    )
    sizes = transposed_sizes(window, op, (h, w))
    whole = transposed_sizes(replace(window, padding=taken), op, (h, w))
    rows = _library_rows(
        builder,
        op,
        replace(window, padding=taken),
        prod(whole),
        output_padding=per_dimension(op, "output_padding", 2),
    )
    if taken != window.padding:
        outputs = output_channels(op, order)
        begins = [
            before - kept for (before, _), (kept, _) in zip(window.padding, taken, strict=True)
        ]
        ends = [begin + size for begin, size in zip(begins, sizes, strict=True)]
        image = builder.reshape(rows, [n, *whole, outputs])
        rows = builder.slice(image, [0, *begins, 0], [n, *ends, outputs])
    return from_rows(builder, rows, op.result_shape, order)


def _conv_transpose2d_program(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Convolution of the dilated input with the reversed kernel."""
    if not is_of_floats(op):
        return None
    sizes = image_shape(op, image_order(op))[1:3]
    window = Window.of(op, kernel_of(op, 2))
    extra = per_dimension(op, "output_padding", 2)
    axes = [
        WindowAxis(
            size,
            window.kernel[axis],
            1,
            window.reach(axis) - 1 - window.padding[axis][0],
            window.reach(axis) - 1 - window.padding[axis][1] + extra[axis],
            window.dilation[axis],
            window.stride[axis],
        )
        for axis, size in enumerate(sizes)
    ]
    groups: int = op.parameter("groups")
    channels, per_group, *kernel = op.shape("weight")
    weight = builder.operand(op, "weight")
    turned = [axis + 2 for axis, size in enumerate(kernel) if size > 1]
    if turned:
        weight = builder.like("reverse", weight, dimensions=turned)
    # (Ci, Co/groups, kernel) as (Co, Ci/groups, kernel)
    weight = builder.reshape(weight, [groups, channels // groups, per_group, *kernel])
    weight = builder.permute(weight, [0, 2, 1, 3, 4])
    weight = builder.reshape(weight, [groups * per_group, channels // groups, *kernel])
    return image_program(builder, op, weight, axes)


register(
    TTIRDefinition(
        "ttir.conv_transpose2d",
        CONVOLUTION_OPERANDS,
        (
            *window_attributes(),
            attribute("output_padding", INTEGERS, [0]),
            GROUPS,
            *IMAGE_DIMS,
            FLATTENED_ATTRIBUTE,
        ),
        verify=_verify_conv_transpose2d,
        numpy=_conv_transpose2d,
        program=_conv_transpose2d_program,
        lower=_lower_conv_transpose2d,
        traits=Trait.OWN_NAN_IN_TILES,
        cpu=cpu_call("convolution", _convolution_on_cpu, function="transposed_convolution"),
    )
)


# conv1d

_SEQUENCE_DIMS = tuple(
    attribute(f"{name}_dim", INTEGER, position)
    for position, name in enumerate(("batch", "length", "channel"))
)


def _verify_conv1d(op: CatalogueOp) -> None:
    """Weight (Co, Ci/groups, kernel length); the result's length follows."""
    order = dims(op, _SEQUENCE_DIMS)
    n, length, channels = (op.shape("input")[axis] for axis in order)
    outputs = output_channels(op, order)
    window = Window.of(op, kernel_of(op, 1))
    expect_channels(op, channels, outputs, (outputs, channels // max(op.parameter("groups"), 1)))
    expected = (n, *window.output_sizes(op, (length,)), outputs)
    expect_shape(op, [expected[order.index(axis)] for axis in range(3)])


def _conv1d(call: Call) -> numpy.ndarray:
    order = [call[spec.name] for spec in _SEQUENCE_DIMS]
    x, weight = np.transpose(call.array("input"), order), call.array("weight")
    result = convolution(x, weight, Window.of(call, weight.shape[2:]), call["groups"])
    return np.transpose(with_bias(call, result), np.argsort(order))


def _decompose_conv1d(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Convolves a sequence as an image of height 1, like the library's conv1d.cpp.

    With width 1 every pixel would be a table entry of its own, and tt-metal limits the table to one
    number per pixel (conv2d_op_program_factory_common.cpp).
    """
    order = dims(op, _SEQUENCE_DIMS)
    window = Window.of(op, kernel_of(op, 1))
    sequence = builder.permute(builder.operand(op, "input"), order)
    n, length, channels = shape_of(sequence.type)
    outputs = output_channels(op, order)
    weight = builder.operand(op, "weight")
    _, weight_channels, kernel = shape_of(weight.type)
    ((before, after),) = window.padding
    (result_length,) = window.output_sizes(op, (length,))
    image = builder.emit(
        "conv2d",
        [
            builder.reshape(sequence, [n, 1, length, channels]),
            builder.reshape(weight, [outputs, weight_channels, 1, kernel]),
            library_bias(builder, op, outputs),
        ],
        TensorType(element_of(op.result_type), [n, 1, result_length, outputs]),
        stride=[1, *window.stride],
        padding=[0, before, 0, after],
        dilation=[1, *window.dilation],
        groups=op.parameter("groups"),
    )
    sequence = builder.reshape(image, [n, result_length, outputs])
    return builder.permute(sequence, inverse_permutation(order))


register(
    TTIRDefinition(
        "ttir.conv1d",
        CONVOLUTION_OPERANDS,
        (*window_attributes(), GROUPS, *_SEQUENCE_DIMS),
        verify=_verify_conv1d,
        numpy=_conv1d,
        decompose=_decompose_conv1d,
        traits=Trait.OWN_NAN_IN_TILES,
    )
)
