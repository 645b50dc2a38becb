"""How closely a card can meet what an output should be, by what the output was computed of."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.arithmetic import Arithmetic, default_config
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.numerics.saturation import Saturation, saturation_of
from ttcodegen.numerics.tolerances import (
    EQUAL,
    FEW_BITS,
    MATRIX_ENGINE,
    SIXTEEN_BITS,
    VECTOR_ENGINE,
    Tolerance,
    is_narrow,
    loosest,
    squeezed,
    tolerance_of_type,
    usually,
)
from ttcodegen.ops.core.calls import COMPUTE_CONFIG_ATTRIBUTE
from ttcodegen.ops.core.definition import TTNNDefinition
from ttcodegen.ops.dialects import TTNNOp
from ttcodegen.ops.tt_lang import LIBRARY_CALL


def output_tolerance(value: SSAValue, source_dtype: str) -> Tolerance:
    """The tolerance of an output of a lowered function; `source_dtype` is its data type in the
    source."""
    found = source_tolerance(declared_data_type(value), source_dtype)
    if found is EQUAL:
        return found
    for op in _producers(value):
        if any(is_narrow(declared_data_type(result)) for result in op.results):
            found = loosest(found, SIXTEEN_BITS)
        found = loosest(found, _engine_tolerance(op))
    return usually(squeezed(found, _saturation(value)))


def source_tolerance(data_type: DataType, source_dtype: str) -> Tolerance:
    """The closest tolerance of outputs of a type, which are exact if those of the source are."""
    if source_dtype == "bool" or source_dtype.startswith(("int", "uint")):
        return EQUAL
    return tolerance_of_type(data_type)


_ARCHITECTURE = "wormhole_b0"
"""Configurations of the other one are as exact."""


def _engine_tolerance(op: TTNNOp) -> Tolerance:
    """What the engines cost that compute a call, by its configuration or the library's default."""
    definition = op.definition
    if not isinstance(definition, TTNNDefinition):
        return VECTOR_ENGINE
    if op.name == LIBRARY_CALL:
        # Which engines its kernels use is not known here.
        return MATRIX_ENGINE
    name = COMPUTE_CONFIG_ATTRIBUTE.name
    config = op.parameter(name) if COMPUTE_CONFIG_ATTRIBUTE in definition.attributes else None
    row = definition.compute_row(op.parameter)
    if row is None:
        return MATRIX_ENGINE if COMPUTE_CONFIG_ATTRIBUTE in definition.attributes else VECTOR_ENGINE
    if config is None:
        config = default_config(
            row,
            [declared_data_type(operand) for operand in op.operands],
            declared_data_type(op.results[0]),
            _ARCHITECTURE,
        )
    arithmetic = Arithmetic.of(config)
    # The exponentials of attention are approximations whatever is configured.
    approximates = row == "attention" or (row == "softmax" and arithmetic.approximate)
    if arithmetic.second_bits < 7 or approximates:
        return FEW_BITS
    if arithmetic.first_bits < 7 or arithmetic.narrow_sums:
        return SIXTEEN_BITS
    return MATRIX_ENGINE


def _saturation(value: SSAValue) -> Saturation | None:
    """The saturating function that gave a value, by itself or as the activation of a product."""
    op = value.owner
    while isinstance(op, TTNNOp) and op.operands and not _computes(op):
        op = op.operands[0].owner
    if not isinstance(op, TTNNOp):
        return None
    return saturation_of(op.definition.short_name, op.parameters())


def _computes(op: TTNNOp) -> bool:
    return isinstance(op.definition, TTNNDefinition) and op.definition.computes


def _producers(value: SSAValue) -> list[TTNNOp]:
    """The calls of the library that a value was computed by, in no order."""
    found: dict[Operation, None] = {}
    pending = [value]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Operation) and owner not in found:
            found[owner] = None
            pending += owner.operands
    return [op for op in found if isinstance(op, TTNNOp)]
