"""Convolutions and pooling. Images are (N, H, W, C) here as there; padding is (top, bottom, left,
right) in TOSA and (top, left, bottom, right) in TTIR, kernels are (Co, H, W, Ci) and (Co, Ci, H,
W)."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.source_ops import SourceOp
from ttcodegen.frontends.tosa.operands import integers, zero_point
from ttcodegen.frontends.tosa.quantized import centred, is_integer
from ttcodegen.frontends.translation import Translator


def _edges(widths: Sequence[int]) -> list[int]:
    """Padding as TTIR has it: what comes before all dimensions, then what comes after."""
    return [*widths[0::2], *widths[1::2]]


def _bias(build: Translator, op: SourceOp, rank: int, channels: int) -> SSAValue | None:
    """The bias as TTIR has it, with elements as the sum has them."""
    if len(op.operands) < 3:
        return None
    value = op.operands[2]
    (size,) = shape_of(value.type)
    if is_integer(op.operands[0]):
        value = build.typecast(value, element_of(centred(build, op, 0, 3).type))
    value = build.reshape(value, [1] * (rank - 1) + [size])
    return value if size == channels else build.repeat(value, [1] * (rank - 1) + [channels])


def _accumulated(
    build: Translator, op: SourceOp, name: str, weight: SSAValue, **attributes: object
) -> SSAValue:
    image = centred(build, op, 0, 3)
    rank = len(op.result_shape)
    bias = _bias(build, op, rank, op.result_shape[-1])
    if bias is not None:
        bias = build.typecast(bias, element_of(image.type))
    element = element_of(image.type)
    result = build.emit(
        name,
        [image, build.typecast(weight, element), bias],
        tensor_type(element, op.result_shape),
        **attributes,
    )
    return build.typecast(result, op.result_element)


def conv2d(build: Translator, op: SourceOp) -> SSAValue:
    """Every output channel sees all of the input."""
    weight = build.permute(centred(build, op, 1, 4), [0, 3, 1, 2])
    return _accumulated(
        build,
        op,
        "conv2d",
        weight,
        stride=integers(op, 9, "stride"),
        padding=_edges(integers(op, 9, "pad")),
        dilation=integers(op, 9, "dilation"),
    )


def depthwise_conv2d(build: Translator, op: SourceOp) -> SSAValue:
    """Kernels are (H, W, C, multiplier), and channel c * multiplier + m sees channel c."""
    weight = build.permute(centred(build, op, 1, 4), [2, 3, 0, 1])
    channels, multiplier, height, width = shape_of(weight.type)
    return _accumulated(
        build,
        op,
        "conv2d",
        build.reshape(weight, [channels * multiplier, 1, height, width]),
        stride=integers(op, 9, "stride"),
        padding=_edges(integers(op, 9, "pad")),
        dilation=integers(op, 9, "dilation"),
        groups=channels,
    )


def conv3d(build: Translator, op: SourceOp) -> SSAValue:
    """Volumes are (N, D, H, W, C), kernels (Co, D, H, W, Ci)."""
    if any(step != 1 for step in integers(op, 9, "dilation")):
        raise CompileError(f"{op.name}: kernels with gaps are not supported in three dimensions")
    padding = integers(op, 9, "pad")
    pairs = list(zip(padding[0::2], padding[1::2], strict=True))
    weight = build.permute(centred(build, op, 1, 4), [0, 4, 1, 2, 3])
    symmetric = all(before == after for before, after in pairs)
    if not symmetric:
        raise CompileError(f"{op.name}: expected as much padding after as before, found {padding}")
    return _accumulated(
        build,
        op,
        "conv3d",
        weight,
        stride=integers(op, 9, "stride"),
        padding=[before for before, _ in pairs],
    )


def transpose_conv2d(build: Translator, op: SourceOp) -> SSAValue:
    """Kernels are (Co, H, W, Ci); `out_pad` widens the result, or cuts it off."""
    image = centred(build, op, 0, 3)
    element = element_of(image.type)
    weight = build.typecast(build.permute(centred(build, op, 1, 4), [3, 0, 1, 2]), element)
    top, bottom, left, right = integers(op, 9, "out_pad")
    stride = integers(op, 9, "stride")
    batch, height, width, channels = op.result_shape
    sizes = [batch, height - top - bottom, width - left - right, channels]
    result = build.emit(
        "conv_transpose2d",
        [image, weight],
        tensor_type(element, sizes),
        stride=stride,
        padding=[0, 0, 0, 0],
        dilation=[1, 1],
    )
    result = build.pad(result, [(0, 0), (top, bottom), (left, right), (0, 0)])
    bias = _bias(build, op, 4, channels)
    if bias is not None:
        result = build.like("add", result, build.typecast(bias, element))
    return build.typecast(result, op.result_element)


def max_pool2d(build: Translator, op: SourceOp) -> SSAValue:
    """The greatest element that each window sees."""
    value = op.operands[0]
    result = build.emit("max_pool2d", [value], op.result_type, **_window(op))
    return result


def avg_pool2d(build: Translator, op: SourceOp) -> SSAValue:
    """The mean of what each window sees of the image: padding does not count."""
    if is_integer(op.operands[0]):
        raise CompileError(f"{op.name} of integers is not supported")
    if zero_point(op, 1) or zero_point(op, 2):
        raise CompileError(f"{op.name} with zero points is not supported")
    return build.emit(
        "avg_pool2d", [op.operands[0]], op.result_type, count_include_pad=False, **_window(op)
    )


def _window(op: SourceOp) -> dict[str, list[int]]:
    return {
        "kernel": integers(op, 9, "kernel"),
        "stride": integers(op, 9, "stride"),
        "padding": _edges(integers(op, 9, "pad")),
        "dilation": [1, 1],
    }
