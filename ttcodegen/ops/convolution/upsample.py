"""Nearest and bilinear upsampling of images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, element_of, f32, shape_of
from ttcodegen.dialects.operations.attribute_kinds import INTEGERS, STRING
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.convolution.sliding_window import per_dimension
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    COMPUTE_CONFIG_ATTRIBUTE,
    NULLOPT,
    Argument,
    CppCalls,
    Text,
    compute_config,
    cpp_text,
    trimmed,
)
from ttcodegen.ops.core.definition import (
    Call,
    Layout,
    OperandSpec,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    register,
)
from ttcodegen.ops.core.dimensions import expect_shape
from ttcodegen.ops.core.engine import cut, element_product, in_destination
from ttcodegen.ops.core.lowering import cpu_call
from ttcodegen.ops.core.traits import CallKind, Trait, no_flops

if TYPE_CHECKING:
    import numpy

MODES = ("nearest", "bilinear")
MOST_TIMES = 1 << 16
"""Largest supported scale factor."""
CHANNEL_BLOCK = 32
"""Bilinear upsampling requires a multiple of this many channels (docs/library-rules.md)."""


def _verify_upsample2d(op: CatalogueOp) -> None:
    """The mode is nearest or bilinear."""
    if op.parameter("mode") not in MODES:
        raise VerifyException(
            f"{op.name}: expected a mode of {' or '.join(MODES)}, found {op.parameter('mode')}"
        )
    _verify_upsampled(op)


def _verify_upsampled(op: CatalogueOp) -> None:
    """An image (N, H, W, C) whose height and width are multiplied by their factors."""
    shape = op.shape("input")
    if len(shape) != 4:
        raise VerifyException(f"{op.name}: expected an input of rank 4, found {shape}")
    factors = per_dimension(op, "scale_factor", 2)
    if any(not 1 <= factor <= MOST_TIMES for factor in factors):
        raise VerifyException(
            f"{op.name}: scale_factor must be positive and at most {MOST_TIMES}, found "
            f"{tuple(factors)}"
        )
    expect_shape(op, [shape[0], shape[1] * factors[0], shape[2] * factors[1], shape[3]])


def nearest(x: numpy.ndarray, factors: tuple[int, int]) -> numpy.ndarray:
    """Repeats every element of an image (N, H, W, C) to a block."""
    return np.repeat(np.repeat(x, factors[0], axis=1), factors[1], axis=2)


def bilinear(x: numpy.ndarray, factors: tuple[int, int]) -> numpy.ndarray:
    """Interpolates between element centres of an image (N, H, W, C), clamped at the edges."""
    return _interpolated(_interpolated(x, 1, factors[0]), 2, factors[1])


def _interpolated(x: numpy.ndarray, axis: int, factor: int) -> numpy.ndarray:
    size = x.shape[axis]
    (place,) = np.indices((size * factor,), dtype=np.float64)
    position = np.clip((place + 0.5) / factor - 0.5, 0, size - 1)
    below = np.floor(position).astype(np.int64)
    above = np.minimum(below + 1, size - 1)
    dtype = np.result_type(x.dtype, np.float32)
    share = (position - below).astype(dtype).reshape([-1] + [1] * (x.ndim - 1 - axis))
    return np.take(x, below, axis=axis) * (1 - share) + np.take(x, above, axis=axis) * share


def _mixed(call: Call) -> numpy.ndarray:
    """Device arithmetic of bilinear upsampling.

    The weights of the four neighbours have 16 fractional bits and are truncated to bfloat16; the
    neighbours are reduced at once.
    """
    x, factors = call.array("input"), tuple(call["scale_factor"])
    arithmetic = call.arithmetic
    if arithmetic is None:
        return bilinear(x, factors)
    rows, columns = (_neighbours(x.shape[axis], factors[axis - 1]) for axis in (1, 2))
    total = np.float32(0)
    for row, row_share in rows:
        for column, column_share in columns:
            shares = (row_share[:, np.newaxis] * column_share >> _FRACTION).astype(np.float32)
            weights = cut(shares / np.float32(1 << _FRACTION), 7)[..., np.newaxis]
            pixels = np.take(np.take(x, row, axis=1), column, axis=2)
            total = total + element_product(pixels, weights, arithmetic)
    return in_destination(np.asarray(total), arithmetic)


_FRACTION = 16
"""Fractional bits of the fixed-point numbers in which the kernel computes weights."""


def _neighbours(size: int, factor: int) -> list[tuple[Array, Array]]:
    """Returns the two source positions of each result position, with fixed-point weights."""
    place = np.arange(size * factor, dtype=np.float64)
    position = np.clip((place + 0.5) / factor - 0.5, 0, size - 1)
    below = np.floor(position).astype(np.int64)
    share = np.floor((position - below) * (1 << _FRACTION)).astype(np.int64)
    return [(below, (1 << _FRACTION) - share), (np.minimum(below + 1, size - 1), share)]


def _upsampling_on_cpu(op: CatalogueOp) -> dict[str, Any]:
    factors = op.parameter("scale_factor")
    bilinear = op.parameter("mode") == "bilinear"
    return {"factors": [factors[0], factors[-1]], "bilinear": bilinear or None}


def _upsample2d(call: Call) -> numpy.ndarray:
    factors = (call["scale_factor"][0], call["scale_factor"][-1])
    x = call.array("input")
    return nearest(x, factors) if call["mode"] == "nearest" else bilinear(x, factors)


def _lower_upsample2d(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    factors = per_dimension(op, "scale_factor", 2)
    value = builder.operand(op, "input")
    if op.parameter("mode") == "nearest":
        return builder.emit("upsample", [value], op.result_type, scale_factor=factors)
    channels = op.shape("input")[-1]
    missing = -channels % CHANNEL_BLOCK
    value = builder.pad(value, [(0, missing)])
    shape = [*op.result_shape[:3], channels + missing]
    result = TensorType(element_of(op.result_type), shape)
    value = builder.emit("upsample_bilinear", [value], result, scale_factor=factors)
    return builder.slice_dim(value, len(shape_of(value.type)) - 1, 0, channels)


def _bilinear_program(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Matmuls with the interpolation matrices of rows, then columns.

    None for nearest, which only moves elements.
    """
    if op.parameter("mode") == "nearest":
        return None
    images, height, width, channels = op.shape("input")
    high, wide = (_shares(builder, *of) for of in zip((height, width), _factors(op), strict=True))
    value = builder.typecast(builder.operand(op, "input"), f32)
    value = _product(builder, high, builder.reshape(value, [images, height, width * channels]))
    rows = images * op.result_shape[1]
    value = _product(builder, wide, builder.reshape(value, [rows, width, channels]))
    value = builder.typecast(value, element_of(op.result_type))
    return builder.reshape(value, op.result_shape)


def _factors(op: CatalogueOp) -> tuple[int, int]:
    first, second = per_dimension(op, "scale_factor", 2)
    return first, second


def _shares(builder: OpBuilder, size: int, factor: int) -> SSAValue | None:
    """Returns the interpolation matrix of a dimension, None for the identity."""
    if factor == 1:
        return None
    shares = _interpolated(np.eye(size, dtype=np.float32), 0, factor)
    return builder.constant(shares)


def _product(builder: OpBuilder, shares: SSAValue | None, value: SSAValue) -> SSAValue:
    if shares is None:
        return value
    *batch, _, columns = shape_of(value.type)
    shape = [*batch, shape_of(shares.type)[0], columns]
    return builder.emit("matmul", [shares, value], TensorType(f32, shape))


register(
    TTIRDefinition(
        "ttir.upsample2d",
        (operand("input"),),
        (attribute("scale_factor", INTEGERS), attribute("mode", STRING, "nearest")),
        verify=_verify_upsample2d,
        numpy=_upsample2d,
        program=_bilinear_program,
        lower=_lower_upsample2d,
        cpu=cpu_call("pooling", _upsampling_on_cpu),
        traits=Trait.OWN_NAN_IN_TILES,
    )
)


def _arguments(calls: CppCalls, op: CatalogueOp) -> list[Argument]:
    calls.include("ttnn/operations/pool/upsample/upsample.hpp")
    factors = ", ".join(str(factor) for factor in op.parameter("scale_factor"))
    return [calls[op.operands[0]], Text(f"std::array<int, 2>{{{factors}}}")]


def _cpp_nearest(calls: CppCalls, op: CatalogueOp) -> None:
    calls.bind(op.results[0], calls.call("ttnn::upsample", *_arguments(calls, op)))


def _cpp_bilinear(calls: CppCalls, op: CatalogueOp) -> None:
    """Emits the call and a move to the result's memory.

    The library leaves the result sharded in L1, whatever memory is requested.
    """
    from ttcodegen.dialects.ttnn.placement import placement_of

    calls.include("ttnn/operations/core/to_memory_config/to_memory_config_op.hpp")
    arguments = [
        *_arguments(calls, op),
        Text(cpp_text("bilinear")),
        NULLOPT,  # memory config
        compute_config(calls, op),
    ]
    sharded = calls.call("ttnn::upsample", *trimmed(arguments))
    memory = calls.memory_config(placement_of(op.results[0]))
    calls.bind(op.results[0], calls.call("ttnn::to_memory_config", sharded, memory))


_FACTORS = attribute("scale_factor", INTEGERS)


def _verify_bilinear(op: CatalogueOp) -> None:
    """The number of channels is a multiple of the tile width."""
    _verify_upsampled(op)
    channels = op.shape("input")[-1]
    if channels % TILE_SIDE:
        raise VerifyException(
            f"{op.name}: the library takes channels by {TILE_SIDE}, and there are {channels}"
        )


# The kernels read rows of channels, so that operands must be row-major.
register(
    TTNNDefinition(
        "ttnn.upsample",
        (OperandSpec("input", layout=Layout.ROW_MAJOR),),
        (_FACTORS,),
        verify=_verify_upsampled,
        numpy=lambda call: nearest(call.array("input"), tuple(call["scale_factor"])),
        result_rules=(ResultRule("first", Layout.ROW_MAJOR),),
        cpp=_cpp_nearest,
        flops=no_flops,
        call_kind=CallKind.INTERPOLATION,
    )
)

register(
    TTNNDefinition(
        "ttnn.upsample_bilinear",
        (OperandSpec("input", layout=Layout.ROW_MAJOR, data_types=(DataType.BFLOAT16,)),),
        (_FACTORS, COMPUTE_CONFIG_ATTRIBUTE),
        verify=_verify_bilinear,
        numpy=_mixed,
        compute="upsample",
        traits=Trait.NARROW_DESTINATION,
        result_rules=(ResultRule("first", Layout.ROW_MAJOR),),
        cpp=_cpp_bilinear,
    )
)
