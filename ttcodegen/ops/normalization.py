"""Normalisations: softmax, and those that scale to zero mean and unit variance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.attribute_kinds import BOOLEAN, INTEGER, INTEGERS, NUMBER
from ttcodegen.dialects.datatypes import DataType, bf16, element_of, f32, shape_of
from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.lazy_numpy import np
from ttcodegen.ops.cpp_calls import (
    COMPUTE_CONFIG_ATTRIBUTE,
    NORM_CONFIG_ATTRIBUTE,
    ArgumentRule,
    Text,
    attribute_,
    compute_config,
    cpp_call,
    nullopt,
    operand_,
    output_memory,
    program_config,
)
from ttcodegen.ops.data_movement import expect_shape, normalized_dim
from ttcodegen.ops.definition import (
    Call,
    OperandSpec,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    optional,
    register,
)
from ttcodegen.ops.engine import (
    fast_exponential,
    first_factor,
    in_destination,
    in_source,
    iterated_reciprocal,
    second_factor,
    sum_along,
)
from ttcodegen.ops.op_builder import OpBuilder
from ttcodegen.ops.work import per_element

if TYPE_CHECKING:
    import numpy

HEADERS = "ttnn/operations/normalization"
FLOATS = (DataType.BFLOAT16, DataType.FLOAT32, DataType.BFLOAT8_B)
"""What softmax, layer_norm and rms_norm compute with (docs/library-rules.md)."""

# softmax


def _verify_softmax(op: CatalogueOp) -> None:
    """The dimension exists; the shape does not change."""
    normalized_dim(op, op.parameter("dimension"), len(op.shape("input")))
    expect_shape(op, op.shape("input"))


def _softmax(call: Call) -> numpy.ndarray:
    x = call.array("input")
    axis = call["dimension"]
    exponentials = np.exp(x - x.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def _library_softmax(call: Call) -> numpy.ndarray:
    """The steps of the kernels. The one for attention, which the library takes for the last
    dimension of rank 4, computes the exponential where the difference is, and lets it be an
    approximation; the others send the difference through a source register."""
    arithmetic, x = call.arithmetic, call.array("input")
    if arithmetic is None:
        return _softmax(call)
    axis = call["dimension"] % x.ndim
    x = in_source(x, arithmetic)
    difference = in_destination(x - x.max(axis=axis, keepdims=True), arithmetic)
    # The library compares the dimension of the tensor of rank 4 with that of the tensor itself.
    if x.ndim <= 4 and axis + (4 - x.ndim) + 1 == x.ndim:
        exponential = fast_exponential if arithmetic.approximate else np.exp
    else:
        exponential, difference = np.exp, in_source(difference, arithmetic)
    powers = in_destination(exponential(difference), arithmetic)
    factors = iterated_reciprocal(sum_along(powers, (axis,), arithmetic), arithmetic)
    factors = first_factor(in_destination(factors, arithmetic), arithmetic)
    return second_factor(powers, arithmetic) * factors


def _softmax_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Exponentials of the distance from the maximum, divided by their sum."""
    value = builder.operand(op, "input")
    axis = op.parameter("dimension") % len(op.result_shape)
    greatest = builder.reduce("max", value, [axis])
    exponentials = builder.like("exp", builder.broadcasting("subtract", value, greatest))
    total = builder.reduce("sum", exponentials, [axis])
    result = builder.broadcasting("div", exponentials, total)
    return builder.typecast(result, op.result_type.element_type)


register(
    TTIRDefinition(
        "ttir.softmax",
        (operand("input"),),
        (attribute("dimension", INTEGER), attribute("numericStable", BOOLEAN, False)),
        verify=_verify_softmax,
        numpy=_softmax,
        primitives=_softmax_primitives,
        # The library's default is the stable form, which is right in either case.
        lower=lambda builder, op: builder.like(
            "softmax",
            builder.operand(op, "input"),
            element=element_of(op.result_type),
            dimension=op.parameter("dimension") % len(op.result_shape),
        ),
    )
)

register(
    TTNNDefinition(
        "ttnn.softmax",
        (OperandSpec("input", data_types=FLOATS),),
        (attribute("dimension", INTEGER), COMPUTE_CONFIG_ATTRIBUTE),
        numpy=_library_softmax,
        compute="softmax",
        result_rules=(ResultRule(placed=True),),
        cpp=cpp_call(
            "ttnn::softmax",
            f"{HEADERS}/softmax/softmax.hpp",
            operand_("input"),
            attribute_("dimension"),
            output_memory,
            compute_config,
        ),
        flops=per_element(5),
    )
)

# layer_norm, rms_norm


def _verify_trailing_norm(op: CatalogueOp) -> None:
    """`normalized_shape` is the end of the input's shape and the shape of weight and bias."""
    shape = op.shape("input")
    normalized = tuple(op.parameter("normalized_shape"))
    if not normalized or shape[-len(normalized) :] != normalized:
        raise VerifyException(
            f"{op.name}: normalized_shape {normalized} is not the end of the input's shape {shape}"
        )
    for name in ("weight", "bias"):
        value = op.optional_operand(name)
        if value is not None and shape_of(value.type) != normalized:
            raise VerifyException(
                f"{op.name}: expected a {name} of shape {normalized}, found {shape_of(value.type)}"
            )
    expect_shape(op, shape)


def _scaled(call: Call, normalized: numpy.ndarray) -> numpy.ndarray:
    weight, bias = call.optional("weight"), call.optional("bias")
    result = normalized if weight is None else normalized * weight
    return result if bias is None else result + bias


def _layer_norm(x: numpy.ndarray, axes: tuple[int, ...], epsilon: float) -> numpy.ndarray:
    centered = x - x.mean(axis=axes, keepdims=True)
    variance = np.square(centered).mean(axis=axes, keepdims=True)
    return centered / np.sqrt(variance + np.float32(epsilon))


def _rms_norm(x: numpy.ndarray, axes: tuple[int, ...], epsilon: float) -> numpy.ndarray:
    return x / np.sqrt(np.square(x).mean(axis=axes, keepdims=True) + np.float32(epsilon))


def _library_norm(call: Call, subtract_mean: bool) -> numpy.ndarray:
    """The steps of the kernels: operands are cut in front of the matrix engine, and results pass
    the destination."""
    arithmetic = call.arithmetic
    assert arithmetic is not None

    def product(a: numpy.ndarray, b: numpy.ndarray) -> numpy.ndarray:
        return in_destination(
            second_factor(a, arithmetic) * first_factor(b, arithmetic), arithmetic
        )

    def mean(a: numpy.ndarray) -> numpy.ndarray:
        total = second_factor(a, arithmetic).sum(axis=-1, keepdims=True)
        return in_destination(total / np.float32(a.shape[-1]), arithmetic)

    x = call.array("input")
    if subtract_mean:
        center = in_source(mean(x), arithmetic)
        x = in_destination(in_source(x, arithmetic) - center, arithmetic)
    variance = in_source(mean(product(x, x)), arithmetic)
    x = product(x, in_destination(1 / np.sqrt(variance + np.float32(call["epsilon"])), arithmetic))
    weight, bias = call.optional("weight"), call.optional("bias")
    if weight is not None:
        x = product(x, weight)
    if bias is not None:
        x = in_destination(in_source(x, arithmetic) + in_source(bias, arithmetic), arithmetic)
    return x


def _lower_trailing_norm(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """The library normalises over the last dimension, so several become one before."""
    shape = op.shape("input")
    normalized = op.parameter("normalized_shape")
    width = prod(normalized)
    outer = shape[: len(shape) - len(normalized)]
    value = builder.reshape(builder.operand(op, "input"), [*outer, width])
    vectors = [
        None if vector is None else builder.reshape(vector, [width])
        for vector in (builder.optional(op, "weight"), builder.optional(op, "bias"))
    ]
    result = builder.emit(
        op.definition.short_name,
        [value, *vectors],
        value.type,
        epsilon=op.parameter("epsilon"),
    )
    return builder.typecast(builder.reshape(result, shape), element_of(op.result_type))


def _trailing_norm_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Mean squares, of what is left without the mean for a layer norm, scale the input."""
    value = builder.operand(op, "input")
    rank = len(op.result_shape)
    axes = list(range(rank - len(op.parameter("normalized_shape")), rank))
    element = element_of(value.type)
    if op.name == "ttir.layer_norm":
        value = builder.broadcasting("subtract", value, builder.reduce("mean", value, axes))
    squares = builder.reduce("mean", builder.like("square", value), axes)
    shape = shape_of(squares.type)
    epsilon = builder.full([1] * len(shape), op.parameter("epsilon"), element)
    scale = builder.like("rsqrt", builder.broadcasting("add", squares, epsilon))
    result = builder.broadcasting("multiply", value, scale)
    for name, function in (("weight", "multiply"), ("bias", "add")):
        factor = builder.optional(op, name)
        if factor is not None:
            result = builder.broadcasting(function, result, factor)
    return builder.typecast(result, op.result_type.element_type)


def _register_trailing_norm(
    name: str,
    normalize: Callable[[numpy.ndarray, tuple[int, ...], float], numpy.ndarray],
    steps: int,
) -> None:
    def meaning(call: Call) -> numpy.ndarray:
        axes = tuple(range(-len(call["normalized_shape"]), 0))
        return _scaled(call, normalize(call.array("input"), axes, call["epsilon"]))

    def library_meaning(call: Call) -> numpy.ndarray:
        if call.arithmetic is not None:
            return _library_norm(call, subtract_mean=name == "layer_norm")
        return _scaled(call, normalize(call.array("input"), (-1,), call["epsilon"]))

    vectors = ("weight", "bias")
    folder = name.replace("_", "")
    register(
        TTIRDefinition(
            f"ttir.{name}",
            (operand("input"), *(optional(vector, input_kind="weight") for vector in vectors)),
            (attribute("normalized_shape", INTEGERS), attribute("epsilon", NUMBER, 1e-5)),
            verify=_verify_trailing_norm,
            numpy=meaning,
            primitives=_trailing_norm_primitives,
            lower=_lower_trailing_norm,
        )
    )
    register(
        TTNNDefinition(
            f"ttnn.{name}",
            (
                OperandSpec("input", data_types=FLOATS),
                *(optional(vector, data_types=FLOATS) for vector in vectors),
            ),
            (attribute("epsilon", NUMBER), COMPUTE_CONFIG_ATTRIBUTE, NORM_CONFIG_ATTRIBUTE),
            numpy=library_meaning,
            compute=name,
            result_rules=(ResultRule(placed=True),),
            flops=per_element(steps),
            cpp=cpp_call(
                f"ttnn::{name}",
                f"{HEADERS}/{folder}/{folder}.hpp",
                operand_("input"),
                attribute_("epsilon"),
                operand_("weight"),
                operand_("bias"),
                nullopt,  # residual input
                output_memory,
                program_config(NORM_CONFIG_ATTRIBUTE.name),
                compute_config,
            ),
        )
    )


_register_trailing_norm("layer_norm", _layer_norm, steps=8)
_register_trailing_norm("rms_norm", _rms_norm, steps=6)

# group_norm


def _verify_group_norm(op: CatalogueOp) -> None:
    """The channels divide into the groups; weight and bias have one element a channel."""
    shape = op.shape("input")
    groups, dim = op.parameter("num_groups"), op.parameter("channel_dim")
    if len(shape) < 4:
        raise VerifyException(f"{op.name}: expected an input of rank 4 or more, found {shape}")
    channels = shape[normalized_dim(op, dim, len(shape))]
    if groups < 1 or channels % groups:
        raise VerifyException(f"{op.name}: {channels} channels do not divide into {groups} groups")
    for name in ("weight", "bias"):
        value = op.optional_operand(name)
        if value is not None and shape_of(value.type) != (channels,):
            raise VerifyException(
                f"{op.name}: expected a {name} of shape {(channels,)}, found {shape_of(value.type)}"
            )
    expect_shape(op, shape)


def _group_norm(call: Call) -> numpy.ndarray:
    x = np.moveaxis(call.array("input"), call["channel_dim"], 1)
    batch, channels = x.shape[:2]
    grouped = x.reshape(batch, call["num_groups"], -1)
    normalized = _layer_norm(grouped, (-1,), call["epsilon"]).reshape(batch, channels, -1)
    by_channel = np.moveaxis(normalized, 1, -1)
    result = np.moveaxis(_scaled(call, by_channel), -1, 1).reshape(x.shape)
    return np.moveaxis(result, 1, call["channel_dim"])


def _decompose_group_norm(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """A group of channels before its positions is one row to layer_norm, which takes every
    float type and shape; the library's group_norm takes only bf16 with its height and channels
    aligned to tiles (docs/library-rules.md), and its mask is of no use here."""
    shape = op.shape("input")
    order = _channels_second(len(shape), op.parameter("channel_dim") % len(shape))
    value = builder.permute(builder.operand(op, "input"), order)
    permuted = shape_of(value.type)
    batch, channels = permuted[:2]
    groups, positions = op.parameter("num_groups"), prod(permuted[2:])
    width = channels // groups * positions
    value = builder.reshape(value, [batch, groups, width])
    value = builder.emit(
        "layer_norm",
        [value, None, None],
        value.type,
        normalized_shape=[width],
        epsilon=op.parameter("epsilon"),
    )
    value = builder.reshape(value, [batch, channels, positions])
    for name, combine in (("weight", "multiply"), ("bias", "add")):
        vector = builder.optional(op, name)
        if vector is not None:
            vector = builder.typecast(vector, element_of(value.type))
            vector = builder.reshape(vector, [1, channels, 1])
            value = builder.broadcasting(combine, value, vector)
    value = builder.permute(builder.reshape(value, permuted), _inverse(order))
    return builder.typecast(value, element_of(op.result_type))


def _channels_second(rank: int, channel: int) -> list[int]:
    others = [axis for axis in range(rank) if axis != channel]
    return [others[0], channel, *others[1:]]


def _inverse(permutation: Sequence[int]) -> list[int]:
    return sorted(range(len(permutation)), key=permutation.__getitem__)


register(
    TTIRDefinition(
        "ttir.group_norm",
        (
            operand("input"),
            optional("input_mask", input_kind="mask"),
            optional("weight", input_kind="weight"),
            optional("bias", input_kind="weight"),
        ),
        (
            attribute("num_groups", INTEGER),
            attribute("epsilon", NUMBER, 1e-12),
            attribute("channel_dim", INTEGER, 3),
        ),
        verify=_verify_group_norm,
        numpy=_group_norm,
        decompose=_decompose_group_norm,
    )
)

# batch_norm_inference, batch_norm_training

_STATISTICS = ("mean", "variance")
_RUNNING = ("running_mean", "running_variance")


def _verify_batch_norm(op: CatalogueOp) -> None:
    """Rank 2 to 5; scale, offset and statistics have one element a channel."""
    shape = op.shape("operand")
    if not 2 <= len(shape) <= 5:
        raise VerifyException(f"{op.name}: expected an operand of rank 2 to 5, found {shape}")
    channels = shape[normalized_dim(op, op.parameter("dimension"), len(shape))]
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
    """The vector of that name in a shape that broadcasts along the channels."""
    rank = call.array("operand").ndim
    channel = call["dimension"] % rank
    return call.array(name).reshape([-1 if axis == channel else 1 for axis in range(rank)])


def _batch_norm_inference(call: Call) -> numpy.ndarray:
    mean, variance = (_along_channels(call, name) for name in _STATISTICS)
    normalized = (call.array("operand") - mean) / np.sqrt(variance + np.float32(call["epsilon"]))
    return normalized * _along_channels(call, "scale") + _along_channels(call, "offset")


def _batch_norm_training(call: Call) -> list[numpy.ndarray]:
    """The output is normalised with the statistics of the batch; the other two results are the
    running statistics after their update."""
    x = call.array("operand")
    axes = tuple(axis for axis in range(x.ndim) if axis != call["dimension"] % x.ndim)
    normalized = _layer_norm(x, axes, call["epsilon"])
    result = normalized * _along_channels(call, "scale") + _along_channels(call, "offset")
    momentum = np.float32(call["momentum"])
    updated = [
        momentum * batch + (1 - momentum) * call.array(name).reshape(-1)
        for batch, name in zip((x.mean(axis=axes), x.var(axis=axes)), _RUNNING, strict=True)
    ]
    shapes = [info.shape for info in call.results[1:]]
    return [result, *(value.reshape(s) for value, s in zip(updated, shapes, strict=True))]


def _batch_norm_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Elementwise ops with vectors along the channels."""
    shape = op.shape("operand")
    axis = op.parameter("dimension") % len(shape)
    vector = [size if axis == dim else 1 for dim, size in enumerate(shape)]
    mean, variance, scale, offset = (
        builder.reshape(builder.operand(op, name), vector)
        for name in (*_STATISTICS, "scale", "offset")
    )
    epsilon = builder.full([1] * len(shape), op.parameter("epsilon"), element_of(variance.type))
    factor = builder.like("rsqrt", builder.broadcasting("add", variance, epsilon))
    factor = builder.broadcasting("multiply", factor, scale)
    centered = builder.broadcasting("subtract", builder.operand(op, "operand"), mean)
    result = builder.broadcasting("multiply", centered, factor)
    result = builder.broadcasting("add", result, offset)
    return builder.typecast(result, op.result_type.element_type)


def _lower_batch_norm_inference(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """The library takes (N, C, H, W) and vectors of shape (1, C, 1, 1) that share a data type."""
    shape = op.shape("operand")
    order = _channels_second(len(shape), op.parameter("dimension") % len(shape))
    value = builder.permute(builder.operand(op, "operand"), order)
    permuted = shape_of(value.type)
    batch, channels, *positions = permuted
    positions = [1] * (2 - len(positions)) + positions
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
    value = builder.permute(builder.reshape(value, permuted), _inverse(order))
    return builder.typecast(value, element_of(op.result_type))


def _decompose_batch_norm_training(builder: OpBuilder, op: CatalogueOp) -> list[SSAValue]:
    """Spelled out, because the library's training mode writes its new statistics into its operands
    while TTIR returns them."""
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


_BATCH_NORM = (attribute("epsilon", NUMBER), attribute("dimension", INTEGER))

register(
    TTIRDefinition(
        "ttir.batch_norm_inference",
        _batch_norm_operands(_STATISTICS),
        _BATCH_NORM,
        verify=_verify_batch_norm,
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
    normalized = call.array("operand") - call.array("mean")
    normalized = normalized / np.sqrt(call.array("variance") + np.float32(call["epsilon"]))
    return normalized * call.array("scale") + call.array("offset")


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
        (attribute("epsilon", NUMBER), COMPUTE_CONFIG_ATTRIBUTE),
        numpy=_library_batch_norm,
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
    )
)
