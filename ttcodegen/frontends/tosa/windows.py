"""Convolution, pooling and quantized arithmetic of TOSA, and parameter operands."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, numpy_name, shape_of, tensor_type
from ttcodegen.dialects.operations.attribute_kinds import INTEGERS
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.special_functions import number_or
from ttcodegen.frontends.translation import SourceOp, Translator, constant_of

# TOSA parameters that are constant operands or, in earlier versions, attributes.


def integers(op: SourceOp, index: int, *names: str) -> list[int]:
    """Reads an integer list: an attribute of one of the names, else the operand at `index`.

    Raises:
        CompileError: if neither exists, or the operand is not constant.
    """
    given = op.given(*names)
    if given is not None:
        try:
            return INTEGERS.decode(given)
        except (TypeError, ValueError):
            raise CompileError(
                f"{op.name}: attribute '{names[0]}' should be a list of integers, found {given}"
            ) from None
    if index >= len(op.operands):
        raise CompileError(f"{op.name} needs the attribute '{names[0]}'")
    found = constant_of(op.operands[index])
    if found is None:
        raise CompileError(
            f"{op.name}: '{names[0]}' has to be constant",
            remedy="export the model for inputs of fixed shapes",
        )
    return [int(value) for value in found.reshape(-1)]


def integer(op: SourceOp, *names: str) -> int:
    """Reads an integer attribute."""
    given = op.given(*names)
    if not isinstance(given, IntegerAttr):
        raise CompileError(f"{op.name}: attribute '{names[0]}' should be an integer")
    return given.value.data


def flag(op: SourceOp, name: str) -> bool:
    """Reads a boolean attribute, false if absent."""
    given = op.given(name)
    return isinstance(given, IntegerAttr) and given.value.data != 0


def number(attribute: Attribute | None) -> float | int | None:
    """Returns a numeric attribute's value, None for others."""
    if isinstance(attribute, IntegerAttr | FloatAttr):
        return attribute.value.data
    return None


def ignores_nan(op: SourceOp) -> bool:
    """Returns whether NaN operands are ignored (the attribute `nan_mode`)."""
    return not is_integer(op.operands[0]) and "IGNORE" in str(op.given("nan_mode"))


def zero_point(op: SourceOp, index: int) -> int:
    """Reads the zero point operand at `index`, 0 if absent.

    Raises:
        CompileError: if it is not constant.
    """
    if index >= len(op.operands):
        return 0
    return round(scalar(op, op.operands[index], "a zero point"))


def scalar(op: SourceOp, value: SSAValue, what: str) -> float | int:
    """Reads the value of a splat constant.

    Raises:
        CompileError: if it is not constant, or not a splat.
    """
    found = constant_of(value)
    if found is None or found.size == 0 or not np.all(found == found.reshape(-1)[0]):
        raise CompileError(f"{op.name}: {what} has to be one constant number")
    return found.reshape(-1)[0].item()


# Arithmetic on integers that represent fractions: zero points, scales and rounding.
#
# The device multiplies matrices and convolves in floats only. Integers of 8 bits and their sums
# are exact in float32 as long as these have 24 bits, which those of most layers do.


def is_integer(value: SSAValue) -> bool:
    """Returns whether elements are integers."""
    return element_of(value.type).name == "integer_type"


def centred(build: Translator, op: SourceOp, index: int, zero: int) -> SSAValue:
    """Operand at `index` as floats minus the zero point operand at `zero`; floats unchanged."""
    value = op.operands[index]
    if not is_integer(value):
        return value
    offset = zero_point(op, zero)
    value = build.typecast(value, f32)
    return value if offset == 0 else build.like("subtract", value, build.number(offset, value))


def shifted(build: Translator, value: SSAValue, shift: int) -> SSAValue:
    """Divides by 2^shift, rounding halves up."""
    half = build.like("add", value, build.number(1 << (shift - 1), value))
    return build.like("right_shift", half, build.number(shift, value))


def rescale(build: Translator, op: SourceOp) -> SSAValue:
    """(input - zero point) * multiplier / 2^shift, rounding halves up, + zero point."""
    multiplier, shift = (_constants(op, i, name) for i, name in ((1, "multiplier"), (2, "shift")))
    scale = multiplier / np.exp2(shift)
    value = op.operands[0]
    shape = shape_of(value.type)
    offset, target = _zero_points(op)
    centre = build.typecast(value, f32)
    if offset:
        centre = build.like("subtract", centre, build.number(offset, centre))
    factor = scale.astype(np.float32).reshape([1] * (len(shape) - 1) + [-1] if shape else [])
    scaled = build.like("multiply", centre, build.constant(factor, f32))
    result = build.like("floor", build.like("add", scaled, build.number(0.5, scaled)))
    if target:
        result = build.like("add", result, build.number(target, result))
    low, high = _range(op)
    return build.typecast(build.like("clamp_scalar", result, min=low, max=high), op.result_element)


def _constants(op: SourceOp, index: int, name: str) -> np.ndarray:
    if op.given(name) is not None:
        return np.asarray(integers(op, index, name), dtype=np.float64)
    found = constant_of(op.operands[index]) if index < len(op.operands) else None
    if found is None:
        raise CompileError(f"{op.name}: the {name} has to be constant")
    return found.astype(np.float64).reshape(-1)


def _zero_points(op: SourceOp) -> tuple[int, int]:
    if op.given("input_zp") is None:
        return zero_point(op, 3), zero_point(op, 4)
    return integers(op, 3, "input_zp")[0], integers(op, 4, "output_zp")[0]


def _range(op: SourceOp) -> tuple[float, float]:
    """Value range of the result's elements."""
    limits = integer_limits(op.result_element, flag(op, "output_unsigned"))
    if limits is None:
        raise CompileError(f"{op.name}: elements of type {op.result_element} are not supported")
    return limits


def integer_limits(element: Attribute, unsigned: bool = False) -> tuple[float, float] | None:
    """Smallest and largest integer of a type as floats; None for other types."""
    name = numpy_name(element)
    if name is None or np.dtype(name).kind not in "iu":
        return None
    if unsigned:
        name = f"u{name.removeprefix('u')}"
    limits = np.iinfo(name)
    return float(limits.min), float(limits.max)


# Convolutions and pooling. Images are (N, H, W, C) here as there; padding is (top, bottom, left,
# right) in TOSA and (top, left, bottom, right) in TTIR, kernels are (Co, H, W, Ci) and (Co, Ci,
# H, W).


def _edges(widths: Sequence[int]) -> list[int]:
    """TTIR's order of padding: all widths before, then all widths after."""
    return [*widths[0::2], *widths[1::2]]


def _bias(build: Translator, op: SourceOp, rank: int, channels: int) -> SSAValue | None:
    """Bias in TTIR's shape and the accumulator's element type."""
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
    """Convolution over all input channels."""
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
    """Depthwise convolution with kernels (H, W, C, multiplier).

    Output channel c * multiplier + m reads channel c.
    """
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
    """3-D convolution of volumes (N, D, H, W, C) with kernels (Co, D, H, W, Ci)."""
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
    """Transposed convolution with kernels (Co, H, W, Ci); `out_pad` extends or crops the result."""
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
    """Max pooling."""
    value = op.operands[0]
    if ignores_nan(op):
        value = number_or(build, value, -inf)
    result = build.emit("max_pool2d", [value], op.result_type, **_window(op))
    return result


def avg_pool2d(build: Translator, op: SourceOp) -> SSAValue:
    """Average pooling without padding in the mean."""
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
