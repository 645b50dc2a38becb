"""How closely a card can meet what an output should be, by what the output was computed of."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.datatypes import DataType
from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.dialects.placement import declared_data_type
from ttcodegen.ops.cpp_calls import COMPUTE_CONFIG_ATTRIBUTE
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
"""A tensor on the way has eight bits of mantissa or less."""

_NARROW = (DataType.BFLOAT16, DataType.BFLOAT8_B, DataType.BFLOAT4_B)


def tolerance_of_type(data_type: DataType, source_dtype: str) -> OutputTolerance:
    """The closest tolerance that outputs of a type can have."""
    if source_dtype == "bool" or source_dtype.startswith(("int", "uint")):
        return EQUAL
    return SIXTEEN_BITS if data_type in _NARROW else VECTOR_ENGINE


def output_tolerance(value: SSAValue, source_dtype: str) -> OutputTolerance:
    """The tolerance of an output of a lowered function; `source_dtype` is that of the source."""
    found = tolerance_of_type(declared_data_type(value), source_dtype)
    if found is not VECTOR_ENGINE:
        return found
    for op in _producers(value):
        if any(declared_data_type(result) in _NARROW for result in op.results):
            return SIXTEEN_BITS
        if COMPUTE_CONFIG_ATTRIBUTE in op.definition.attributes:
            found = MATRIX_ENGINE
    return found


def _producers(value: SSAValue) -> list[CatalogueOp]:
    """The calls of the library that a value was computed by, in no order."""
    found: dict[Operation, None] = {}
    pending = [value]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Operation) and owner not in found:
            found[owner] = None
            pending += owner.operands
    return [op for op in found if isinstance(op, TTNNOp)]
