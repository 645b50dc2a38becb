"""Softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN, INTEGER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    COMPUTE_CONFIG_ATTRIBUTE,
    attribute_,
    compute_config,
    cpp_call,
    operand_,
    output_memory,
)
from ttcodegen.ops.core.definition import (
    Call,
    OperandSpec,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    register,
)
from ttcodegen.ops.core.dimensions import along
from ttcodegen.ops.core.engine import (
    element_product,
    fast_exponential,
    in_destination,
    in_source,
    iterated_reciprocal,
    sum_along,
)
from ttcodegen.ops.core.shape_checks import expect_shape, normalized_dim
from ttcodegen.ops.core.traits import CallKind
from ttcodegen.ops.core.work import per_element
from ttcodegen.ops.elementwise.registration import in_floats, require_floats
from ttcodegen.ops.normalization.norms import FLOATS, HEADERS

if TYPE_CHECKING:
    import numpy


LEAST_SCORE = -131072.0
"""Below it, programs of the device take all scores of a row for equal, if there is none above. The
matrix engine finds the maximum of a row with 10 bits of mantissa, which down to here is near enough
to the true one for the exponential of the distance not to be zero. Where a mask adds the lowest
float32 to all scores of a row, it would be, and a row of zeros has no sum to be divided by."""


def _verify_softmax(op: CatalogueOp) -> None:
    """The dimension exists; the shape does not change, and the result is of floats."""
    normalized_dim(op, op.parameter("dimension"), len(op.shape("input")))
    expect_shape(op, op.shape("input"))
    require_floats(op, op.results)


def _softmax(call: Call) -> numpy.ndarray:
    x = in_floats(call.array("input"))
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
    return element_product(powers, in_destination(factors, arithmetic), arithmetic)


def _least_distance(builder: OpBuilder, greatest: SSAValue) -> SSAValue:
    """Zero for rows whose maximum is below `LEAST_SCORE`, so that all of their elements are alike;
    for others nothing (minus infinity). Rows of minus infinities alone have no softmax."""
    element, ones = element_of(greatest.type), [1] * len(shape_of(greatest.type))
    least, nothing = (builder.full(ones, number, element) for number in (LEAST_SCORE, -np.inf))
    is_low = builder.broadcasting("lt", greatest, least)
    zero = builder.like("subtract", greatest, greatest)
    return builder.broadcasting("where", is_low, zero, nothing, element=element)


def _softmax_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Exponentials of the distance from the maximum, divided by their sum."""
    value = builder.operand(op, "input")
    if not declared_data_type(value).is_float:
        # The distance below is minus infinity for most rows, which integers do not have.
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
    )
)
