"""Layer norm, RMS norm, group norm and softmax."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, element_of, shape_of
from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN, EPSILON, INTEGER, INTEGERS
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    COMPUTE_CONFIG_ATTRIBUTE,
    NORM_CONFIG_ATTRIBUTE,
    attribute_,
    compute_config,
    cpp_call,
    operand_,
    output_memory,
    program_config,
)
from ttcodegen.ops.core.definition import (
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
from ttcodegen.ops.core.dimensions import (
    Dimensions,
    all_but,
    along,
    expect_shape,
    normalized_dim,
    require,
)
from ttcodegen.ops.core.engine import (
    element_product,
    fast_exponential,
    in_destination,
    in_source,
    iterated_reciprocal,
    second_factor,
    sum_along,
)
from ttcodegen.ops.core.traits import CallKind, Trait, per_element
from ttcodegen.ops.elementwise.registration import in_floats, require_floats
from ttcodegen.ops.movement.data_movement import inverse_permutation

if TYPE_CHECKING:
    import numpy


# Normalizations of rows and of groups of channels to zero mean and unit variance.

HEADERS = "ttnn/operations/normalization"
FLOATS = (DataType.BFLOAT16, DataType.FLOAT32, DataType.BFLOAT8_B)
"""Data types that softmax, layer_norm and rms_norm take (docs/library-rules.md)."""

# layer_norm, rms_norm

_VECTORS = ("weight", "bias")
NORMS = frozenset({"layer_norm", "rms_norm"})
"""Names of the calls."""
RESIDUAL = "residual"
"""Operand that is added to the input before normalization."""


def _verify_library_norm(op: CatalogueOp) -> None:
    """Floats, normalized along the last dimension, which has the size of weight and bias; the
    residual has the shape of the input.
    """
    require_floats(op)
    shape = op.shape("input")
    require(op, bool(shape), "an input of rank 1 or more", shape)
    for name in _VECTORS:
        value = op.optional_operand(name)
        if value is not None:
            found = shape_of(value.type)
            require(op, prod(found) == shape[-1], f"a {name} of {shape[-1]} elements", found)
    residual = op.optional_operand(RESIDUAL)
    if residual is not None:
        found = shape_of(residual.type)
        require(op, found == shape, f"a residual of shape {shape}", found)
    expect_shape(op, shape)


def _verify_trailing_norm(op: CatalogueOp) -> None:
    """Floats; `normalized_shape` is the end of the input's shape and the shape of weight
    and bias.
    """
    require_floats(op)
    shape = op.shape("input")
    normalized = tuple(op.parameter("normalized_shape"))
    if not normalized or shape[-len(normalized) :] != normalized:
        raise VerifyException(
            f"{op.name}: normalized_shape {normalized} is not the end of the input's shape {shape}"
        )
    for name in _VECTORS:
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


def layer_normalized(x: numpy.ndarray, axes: tuple[int, ...], epsilon: float) -> numpy.ndarray:
    """Normalizes to zero mean and unit variance along the axes."""
    centered = x - x.mean(axis=axes, keepdims=True)
    variance = np.square(centered).mean(axis=axes, keepdims=True)
    return centered / np.sqrt(variance + np.float32(epsilon))


def _rms_norm(x: numpy.ndarray, axes: tuple[int, ...], epsilon: float) -> numpy.ndarray:
    return x / np.sqrt(np.square(x).mean(axis=axes, keepdims=True) + np.float32(epsilon))


def _library_norm(call: Call, subtract_mean: bool) -> numpy.ndarray:
    """Device arithmetic of the norm kernels: truncated sources, rounded destination."""
    arithmetic = call.arithmetic
    assert arithmetic is not None

    def product(a: numpy.ndarray, b: numpy.ndarray) -> numpy.ndarray:
        return in_destination(element_product(a, b, arithmetic), arithmetic)

    def mean(a: numpy.ndarray) -> numpy.ndarray:
        total = second_factor(a, arithmetic).sum(axis=-1, keepdims=True)
        return in_destination(total / np.float32(a.shape[-1]), arithmetic)

    x = call.array("input")
    residual = call.optional(RESIDUAL)
    if residual is not None:
        x = in_destination(in_source(x, arithmetic) + in_source(residual, arithmetic), arithmetic)
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
    """Merges the normalized dimensions, because the library normalizes the last one only."""
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
        [value, *vectors, None],
        value.type,
        epsilon=op.parameter("epsilon"),
    )
    return builder.typecast(builder.reshape(result, shape), element_of(op.result_type))


def _trailing_norm_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Scales the (for layer norm, centered) input by the root of its mean square."""
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


def _before_normalized(op: CatalogueOp) -> Dimensions:
    """Labels of all dimensions but the trailing normalized ones."""
    rank = len(op.shape("input"))
    return all_but(op, range(rank - len(op.parameter("normalized_shape")), rank))


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
        residual = call.optional(RESIDUAL)
        x = call.array("input") if residual is None else call.array("input") + residual
        return _scaled(call, normalize(x, (-1,), call["epsilon"]))

    folder = name.replace("_", "")
    register(
        TTIRDefinition(
            f"ttir.{name}",
            (operand("input"), *(optional(vector, input_kind="weight") for vector in _VECTORS)),
            (attribute("normalized_shape", INTEGERS), attribute("epsilon", EPSILON, 1e-5)),
            verify=_verify_trailing_norm,
            dimensions=_before_normalized,
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
                *(optional(vector, data_types=FLOATS) for vector in _VECTORS),
                optional(RESIDUAL, data_types=FLOATS, is_own=True),
            ),
            (attribute("epsilon", EPSILON), COMPUTE_CONFIG_ATTRIBUTE, NORM_CONFIG_ATTRIBUTE),
            verify=_verify_library_norm,
            numpy=library_meaning,
            compute=name,
            call_kind=CallKind.NORMALIZATION,
            result_rules=(ResultRule(placed=True),),
            flops=per_element(steps),
            cpp=cpp_call(
                f"ttnn::{name}",
                f"{HEADERS}/{folder}/{folder}.hpp",
                operand_("input"),
                attribute_("epsilon"),
                operand_("weight"),
                operand_("bias"),
                operand_(RESIDUAL),
                output_memory,
                program_config(NORM_CONFIG_ATTRIBUTE.name),
                compute_config,
            ),
            nouns=("normalized",),
            traits=Trait.OF_LAYER,
            block_floats=("input", RESIDUAL),
        )
    )


_register_trailing_norm("layer_norm", layer_normalized, steps=8)
_register_trailing_norm("rms_norm", _rms_norm, steps=6)

# group_norm


def _verify_group_norm(op: CatalogueOp) -> None:
    """Floats whose channels divide into the groups; weight and bias have one element per
    channel.
    """
    require_floats(op)
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
    normalized = layer_normalized(grouped, (-1,), call["epsilon"]).reshape(batch, channels, -1)
    by_channel = np.moveaxis(normalized, 1, -1)
    result = np.moveaxis(_scaled(call, by_channel), -1, 1).reshape(x.shape)
    return np.moveaxis(result, 1, call["channel_dim"])


def _decompose_group_norm(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """One layer_norm row per group of channels.

    layer_norm takes every float type and shape; the library's group_norm takes only bf16 with
    height and channels aligned to tiles (docs/library-rules.md). The mask serves that call only.
    """
    shape = op.shape("input")
    order = channels_second(len(shape), op.parameter("channel_dim") % len(shape))
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
    value = builder.permute(builder.reshape(value, permuted), inverse_permutation(order))
    return builder.typecast(value, element_of(op.result_type))


def channels_second(rank: int, channel: int) -> list[int]:
    """Returns the permutation that moves the channels to dimension 1."""
    others = [axis for axis in range(rank) if axis != channel]
    return [others[0], channel, *others[1:]]


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
            attribute("epsilon", EPSILON, 1e-12),
            attribute("channel_dim", INTEGER, 3),
        ),
        verify=_verify_group_norm,
        numpy=_group_norm,
        decompose=_decompose_group_norm,
    )
)


# Softmax.

LEAST_SCORE = -131072.0
"""Rows whose maximum is below this get a uniform softmax in device programs.

The matrix engine finds the maximum with 10 bits of mantissa; above this bound the error is small
enough that exp(distance) is not zero. If a mask adds the lowest float32 to all scores of a row, all
exponentials would be zero, and the row would be divided by a sum of zero.
"""


def _verify_softmax(op: CatalogueOp) -> None:
    """The dimension exists, the shape is unchanged and the result is a float tensor."""
    normalized_dim(op, op.parameter("dimension"), len(op.shape("input")))
    expect_shape(op, op.shape("input"))
    require_floats(op, op.results)


def _softmax(call: Call) -> numpy.ndarray:
    x = in_floats(call.array("input"))
    axis = call["dimension"]
    exponentials = np.exp(x - x.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def _library_softmax(call: Call) -> numpy.ndarray:
    """Device arithmetic of the softmax kernels.

    The attention kernel, used for the last dimension at rank 4, exponentiates in the destination,
    possibly approximated; the others pass the difference through a source register.
    """
    arithmetic, x = call.arithmetic, call.array("input")
    if arithmetic is None:
        return _softmax(call)
    axis = call["dimension"] % x.ndim
    x = in_source(x, arithmetic)
    difference = in_destination(x - x.max(axis=axis, keepdims=True), arithmetic)
    # The library compares the dimension after padding to rank 4 with the original rank.
    if x.ndim <= 4 and axis + (4 - x.ndim) + 1 == x.ndim:
        exponential = fast_exponential if arithmetic.approximate else np.exp
    else:
        exponential, difference = np.exp, in_source(difference, arithmetic)
    powers = in_destination(exponential(difference), arithmetic)
    factors = iterated_reciprocal(sum_along(powers, (axis,), arithmetic), arithmetic)
    return element_product(powers, in_destination(factors, arithmetic), arithmetic)


def _least_distance(builder: OpBuilder, greatest: SSAValue) -> SSAValue:
    """Returns the lower bound of the distances to the maximum.

    Zero for rows whose maximum is below `LEAST_SCORE`, so that their elements count as equal, else
    minus infinity. Rows of only minus infinity have no softmax (NaN).
    """
    element, ones = element_of(greatest.type), [1] * len(shape_of(greatest.type))
    least, nothing = (builder.full(ones, number, element) for number in (LEAST_SCORE, -np.inf))
    is_low = builder.broadcasting("lt", greatest, least)
    zero = builder.like("subtract", greatest, greatest)
    return builder.broadcasting("where", is_low, zero, nothing, element=element)


def _softmax_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """exp(x - max) divided by its sum."""
    value = builder.operand(op, "input")
    if not declared_data_type(value).is_float:
        # The lower bound is minus infinity for most rows, which integers cannot represent.
        value = builder.typecast(value, op.result_type.element_type)
    axis = op.parameter("dimension") % len(op.result_shape)
    greatest = builder.reduce("max", value, [axis])
    distance = builder.broadcasting("subtract", value, greatest)
    distance = builder.broadcasting("maximum", distance, _least_distance(builder, greatest))
    exponentials = builder.like("exp", distance)
    total = builder.reduce("sum", exponentials, [axis])
    result = builder.broadcasting("div", exponentials, total)
    return builder.typecast(result, op.result_type.element_type)


register(
    TTIRDefinition(
        "ttir.softmax",
        (operand("input"),),
        (attribute("dimension", INTEGER), attribute("numericStable", BOOLEAN, False)),
        verify=_verify_softmax,
        dimensions=along("dimension"),
        numpy=_softmax,
        traits=Trait.OWN_NAN_IN_TILES,
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
        verify=_verify_softmax,
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
        nouns=("probabilities",),
        call_kind=CallKind.NORMALIZATION,
        block_floats=("input",),
    )
)
