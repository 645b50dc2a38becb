"""How closely a card can meet what an output should be, by what the output was computed of."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.arithmetic import Arithmetic, default_config
from ttcodegen.dialects.datatypes import DataType
from ttcodegen.dialects.placement import declared_data_type
from ttcodegen.ops.cpp_calls import COMPUTE_CONFIG_ATTRIBUTE, MATMUL_CONFIG_ATTRIBUTE
from ttcodegen.ops.definition import TTNNDefinition
from ttcodegen.ops.ttnn import TTNNOp


@dataclass(frozen=True)
class OutputTolerance:
    """How far an output may be from the golden one."""

    correlation: float
    """The least Pearson correlation."""
    range_error: float
    """The largest error, as a part of the range of the golden output."""


EQUAL = OutputTolerance(1.0, 0.0)
"""Integers and booleans."""
VECTOR_ENGINE = OutputTolerance(0.9999, 0.001)
"""Ops on 24 bits of mantissa."""
MATRIX_ENGINE = OutputTolerance(0.9995, 0.01)
"""Operands are cut to 11 bits of mantissa, and reciprocals are good to 0.15 %."""
SIXTEEN_BITS = OutputTolerance(0.999, 0.02)
"""A tensor on the way, an operand in the multiplier or a sum has eight bits of mantissa or less."""
FEW_BITS = OutputTolerance(0.99, 0.05)
"""An operand in the multiplier has five bits of mantissa, or a reciprocal is good to 4 %."""

_NARROW = (DataType.BFLOAT16, DataType.BFLOAT8_B, DataType.BFLOAT4_B)


def tolerance_of_type(data_type: DataType, source_dtype: str) -> OutputTolerance:
    """The closest tolerance that outputs of a type can have."""
    if source_dtype == "bool" or source_dtype.startswith(("int", "uint")):
        return EQUAL
    return SIXTEEN_BITS if data_type in _NARROW else VECTOR_ENGINE


def output_tolerance(value: SSAValue, source_dtype: str) -> OutputTolerance:
    """The tolerance of an output of a lowered function; `source_dtype` is that of the source."""
    found = tolerance_of_type(declared_data_type(value), source_dtype)
    if found is EQUAL:
        return found
    for op in _producers(value):
        if any(declared_data_type(result) in _NARROW for result in op.results):
            found = max(found, SIXTEEN_BITS, key=_looseness)
        found = max(found, _engine_tolerance(op), key=_looseness)
    return found


_ARCHITECTURE = "wormhole_b0"
"""Configurations of the other one are as exact."""


def _looseness(tolerance: OutputTolerance) -> float:
    return tolerance.range_error


def _engine_tolerance(op: TTNNOp) -> OutputTolerance:
    """What the engines cost that compute a call, by its configuration or the library's default."""
    definition = op.definition
    if not isinstance(definition, TTNNDefinition):
        return VECTOR_ENGINE
    name = COMPUTE_CONFIG_ATTRIBUTE.name
    config = op.parameter(name) if COMPUTE_CONFIG_ATTRIBUTE in definition.attributes else None
    if definition.compute is None:
        return MATRIX_ENGINE if COMPUTE_CONFIG_ATTRIBUTE in definition.attributes else VECTOR_ENGINE
    if config is None:
        program = MATMUL_CONFIG_ATTRIBUTE
        config = default_config(
            definition.compute,
            program in definition.attributes and op.parameter(program.name) is not None,
            [declared_data_type(operand) for operand in op.operands],
            declared_data_type(op.results[0]),
            _ARCHITECTURE,
        )
    arithmetic = Arithmetic.of(config)
    if arithmetic.second_bits < 7 or (definition.compute == "softmax" and arithmetic.approximate):
        return FEW_BITS
    if arithmetic.first_bits < 7 or arithmetic.narrow_sums:
        return SIXTEEN_BITS
    return MATRIX_ENGINE


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
