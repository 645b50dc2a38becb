"""Batch normalization for inference and training."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, bf16, element_of, f32, shape_of
from ttcodegen.dialects.operations.attribute_kinds import EPSILON, INTEGER, NUMBER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    COMPUTE_CONFIG_ATTRIBUTE,
    ArgumentRule,
    Text,
    attribute_,
    compute_config,
    cpp_call,
    nullopt,
    operand_,
)
from ttcodegen.ops.core.definition import (
    Call,
    OperandSpec,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    register,
)
from ttcodegen.ops.core.dimensions import Dimensions, expect_shape, known_parameter, normalized_dim
from ttcodegen.ops.core.engine import element_product, in_destination, in_source, rounded_sums
from ttcodegen.ops.core.traits import per_element
from ttcodegen.ops.elementwise.registration import require_floats
from ttcodegen.ops.reduction.norms import HEADERS, layer_normalized

if TYPE_CHECKING:
    import numpy

_STATISTICS = ("mean", "variance")
_RUNNING = ("running_mean", "running_variance")


def _verify_batch_norm(op: CatalogueOp) -> None:
    """Floats of rank 2 to 5; scale, offset and statistics have one element per channel."""
    require_floats(op)
    shape = op.shape("operand")
    if not 2 <= len(shape) <= 5:
        raise VerifyException(f"{op.name}: expected an operand of rank 2 to 5, found {shape}")
    channels = shape[normalized_dim(op, known_parameter(op, "dimension", 1), len(shape))]
    for spec in op.definition.operands[1:]:
        if prod(op.shape(spec.name)) != channels:
            raise VerifyException(
                f"{op.name}: expected a {spec.name} of {channels} elements, "
                f"found shape {op.shape(spec.name)}"
            )
    expect_shape(op, shape)
    for result in op.results[1:]:
        if prod(shape_of(result.type)) != channels:
            raise VerifyException(
                f"{op.name}: expected statistics of {channels} elements, "
                f"found shape {shape_of(result.type)}"
            )


def _along_channels(call: Call, name: str) -> numpy.ndarray:
    """Returns a vector operand in a shape that broadcasts along the channels."""
    rank = call.array("operand").ndim
    channel = call["dimension"] % rank
    return call.array(name).reshape([-1 if axis == channel else 1 for axis in range(rank)])


def _batch_norm_dimensions(op: CatalogueOp) -> Dimensions:
    """Labels of an elementwise op with vectors along the channel dimension."""
    rank = len(op.shape("operand"))
    channel = op.parameter("dimension") % rank
    image = tuple(range(rank))
    vectors = [
        (channel,) if len(shape_of(vector.type)) == 1 else (None,) * len(shape_of(vector.type))
        for vector in op.operands[1:]
    ]
    labels = image
    if any(vector != (channel,) for vector in vectors):
        labels = tuple([None if dim == channel else dim for dim in image])
        vectors = [(None,) * len(vector) for vector in vectors]
    return Dimensions([labels, *vectors], [labels])


def _batch_norm_inference(call: Call) -> numpy.ndarray:
    mean, variance = (_along_channels(call, name) for name in _STATISTICS)
    normalized = (call.array("operand") - mean) / np.sqrt(variance + np.float32(call["epsilon"]))
    return normalized * _along_channels(call, "scale") + _along_channels(call, "offset")


def _batch_norm_training(call: Call) -> list[numpy.ndarray]:
    """Normalizes with batch statistics; also returns the updated running statistics."""
    x = call.array("operand")
    axes = tuple(axis for axis in range(x.ndim) if axis != call["dimension"] % x.ndim)
    normalized = layer_normalized(x, axes, call["epsilon"])
    result = normalized * _along_channels(call, "scale") + _along_channels(call, "offset")
    momentum = np.float32(call["momentum"])
    updated = [
        momentum * batch + (1 - momentum) * call.array(name).reshape(-1)
        for batch, name in zip((x.mean(axis=axes), x.var(axis=axes)), _RUNNING, strict=True)
    ]
    shapes = [info.shape for info in call.results[1:]]
    return [result, *(value.reshape(s) for value, s in zip(updated, shapes, strict=True))]


def _batch_norm_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Elementwise ops with vectors along the channels, in the widest of their types.

    The scale factor usually depends on weights only and is computed before the program runs.
    """
    shape = op.shape("operand")
    axis = op.parameter("dimension") % len(shape)
    vector = [size if axis == dim else 1 for dim, size in enumerate(shape)]
    types = [element_of(operand.type) for operand in op.operands]
    element = f32 if f32 in types else types[0]
    value, mean, variance, scale, offset = (
        builder.typecast(builder.operand(op, name), element)
        for name in ("operand", *_STATISTICS, "scale", "offset")
    )
    mean, variance, scale, offset = (
        builder.reshape(each, vector) for each in (mean, variance, scale, offset)
    )
    epsilon = builder.full([1] * len(shape), op.parameter("epsilon"), element_of(variance.type))
    factor = builder.like("rsqrt", builder.broadcasting("add", variance, epsilon))
    factor = builder.broadcasting("multiply", factor, scale)
    centered = builder.broadcasting("subtract", value, mean)
    result = builder.broadcasting("multiply", centered, factor)
    result = builder.broadcasting("add", result, offset)
    return builder.typecast(result, op.result_type.element_type)


def _lower_batch_norm_inference(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Lowers to the library call for (N, C, H, W) with (1, C, 1, 1) vectors of one data type.

    Other channel positions and ranks below 4 become elementwise calls, which move less than
    permutes or tile padding would.
    """
    shape = op.shape("operand")
    if op.parameter("dimension") % len(shape) != 1 or len(shape) < 4:
        return _batch_norm_primitives(builder, op)
    value = builder.operand(op, "operand")
    batch, channels, *positions = shape
    four = [batch, channels, prod(positions[:-1]), positions[-1]]
    vectors = [builder.operand(op, spec.name) for spec in op.definition.operands[1:]]
    element = f32 if any(element_of(vector.type) == f32 for vector in vectors) else bf16
    scale, offset, mean, variance = (
        builder.reshape(builder.typecast(vector, element), [1, channels, 1, 1])
        for vector in vectors
    )
    value = builder.reshape(value, four)
    value = builder.emit(
        "batch_norm_inference",
        [value, mean, variance, scale, offset],
        value.type,
        epsilon=op.parameter("epsilon"),
    )
    return builder.typecast(builder.reshape(value, shape), element_of(op.result_type))


def _decompose_batch_norm_training(builder: OpBuilder, op: CatalogueOp) -> list[SSAValue]:
    """Elementwise ops and reductions.

    The library's training mode updates the statistics in place, while TTIR returns them.
    """
    value = builder.operand(op, "operand")
    shape = shape_of(value.type)
    rank, element = len(shape), element_of(value.type)
    channel = op.parameter("dimension") % rank
    axes = [axis for axis in range(rank) if axis != channel]
    along = [shape[axis] if axis == channel else 1 for axis in range(rank)]

    def vector(name: str) -> SSAValue:
        return builder.reshape(builder.typecast(builder.operand(op, name), element), along)

    def constant(number: float) -> SSAValue:
        return builder.full([1] * rank, number, element)

    mean = builder.reduce("mean", value, axes)
    centered = builder.broadcasting("subtract", value, mean)
    variance = builder.reduce("mean", builder.like("multiply", centered, centered), axes)
    widened = builder.broadcasting("add", variance, constant(op.parameter("epsilon")))
    factor = builder.broadcasting("multiply", builder.like("rsqrt", widened), vector("scale"))
    result = builder.broadcasting("multiply", centered, factor)
    result = builder.broadcasting("add", result, vector("offset"))
    results = [builder.typecast(result, element_of(op.result_type))]
    momentum = op.parameter("momentum")
    for batch, name, target in zip((mean, variance), _RUNNING, op.results[1:], strict=True):
        new = builder.broadcasting("multiply", batch, constant(momentum))
        old = builder.broadcasting("multiply", vector(name), constant(1.0 - momentum))
        updated = builder.reshape(builder.like("add", new, old), shape_of(target.type))
        results.append(builder.typecast(updated, element_of(target.type)))
    return results


def _batch_norm_operands(statistics: Sequence[str]) -> tuple[OperandSpec, ...]:
    mean, variance = statistics
    return (
        operand("operand"),
        operand("scale", input_kind="weight"),
        operand("offset", input_kind="weight"),
        operand(mean, input_kind="weight"),
        operand(variance, input_kind="variance"),
    )


_BATCH_NORM = (attribute("epsilon", EPSILON), attribute("dimension", INTEGER))

register(
    TTIRDefinition(
        "ttir.batch_norm_inference",
        _batch_norm_operands(_STATISTICS),
        _BATCH_NORM,
        verify=_verify_batch_norm,
        dimensions=_batch_norm_dimensions,
        numpy=_batch_norm_inference,
        primitives=_batch_norm_primitives,
        lower=_lower_batch_norm_inference,
    )
)

register(
    TTIRDefinition(
        "ttir.batch_norm_training",
        _batch_norm_operands(_RUNNING),
        (*_BATCH_NORM, attribute("momentum", NUMBER)),
        results=3,
        verify=_verify_batch_norm,
        numpy=_batch_norm_training,
        decompose=_decompose_batch_norm_training,
    )
)


def _library_batch_norm(call: Call) -> numpy.ndarray:
    """Device arithmetic of the batch norm kernels.

    Float32 operands or 32-bit sums use the vector engine, others the matrix engine; intermediates
    are float32 if any operand is.
    """
    x, epsilon = call.array("operand"), np.float32(call["epsilon"])
    arithmetic = call.arithmetic
    if arithmetic is None:
        normalized = (x - call.array("mean")) / np.sqrt(call.array("variance") + epsilon)
        return normalized * call.array("scale") + call.array("offset")
    wide = "float32" in [dtype for dtypes in call.operand_dtypes.values() for dtype in dtypes]
    in_matrix_engine = arithmetic.narrow_sums and not wide

    def read(array: numpy.ndarray) -> numpy.ndarray:
        return in_source(array, arithmetic) if arithmetic.narrow_sums else array

    def times(a: numpy.ndarray, b: numpy.ndarray) -> numpy.ndarray:
        found = element_product(a, b, arithmetic) if in_matrix_engine else a * b
        return in_destination(found, arithmetic)

    def packed(array: numpy.ndarray) -> numpy.ndarray:
        return array if wide else rounded_sums(array)

    mean, variance, scale, offset = (
        read(call.array(name)) for name in ("mean", "variance", "scale", "offset")
    )
    if not wide:
        epsilon = np.float32(rounded_sums(np.full(1, epsilon))[0])
    widened = in_destination(variance + epsilon, arithmetic)
    factor = read(packed(in_destination(1 / np.sqrt(widened), arithmetic)))
    centered = in_destination(read(x) - mean, arithmetic)
    scaled = times(read(packed(times(centered, factor))), scale)
    return in_destination(read(packed(scaled)) + offset, arithmetic)


def _text(text: str) -> ArgumentRule:
    return lambda calls, op: Text(text)


_BATCH_NORM_TYPES = (DataType.BFLOAT16, DataType.FLOAT32)

register(
    TTNNDefinition(
        "ttnn.batch_norm_inference",
        tuple(
            OperandSpec(name, data_types=_BATCH_NORM_TYPES)
            for name in ("operand", "mean", "variance", "scale", "offset")
        ),
        (attribute("epsilon", EPSILON), COMPUTE_CONFIG_ATTRIBUTE),
        verify=_verify_batch_norm,
        numpy=_library_batch_norm,
        compute="batch_norm",
        cpp=cpp_call(
            "ttnn::batch_norm",
            f"{HEADERS}/batch_norm/batch_norm.hpp",
            operand_("operand"),
            operand_("mean"),
            operand_("variance"),
            _text("/*training=*/false"),
            attribute_("epsilon"),
            _text("/*momentum=*/0.1F"),
            operand_("scale"),
            operand_("offset"),
            nullopt,  # output tensor
            nullopt,  # memory config
            compute_config,
        ),
        flops=per_element(4),
        nouns=("normalized",),
    )
)
