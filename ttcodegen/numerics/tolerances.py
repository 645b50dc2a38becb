"""How far outputs may be from what was expected, by how exactly they were computed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ttcodegen.dialects.datatypes import DataType


@dataclass(frozen=True)
class Tolerance:
    """How far an output may be from what was expected."""

    correlation: float
    """The least Pearson correlation of outputs that vary."""
    range_error: float
    """The largest error, as a part of the range of the expected output; infinite for no bound."""
    relative_error: float
    """The largest error of outputs that do not vary, as a part of their magnitude."""
    deviation: float
    """The standard deviation, as a part of the root mean square, up to which an output counts as
    one that does not vary: so much that rounding is not what correlation sees."""
    rounding: float
    """An error, as a part of the magnitude, that is in order whatever the range."""
    agreement: float = 1.0
    """The least part of integers or booleans that has to be equal."""

    def allows_less_than(self, other: Tolerance) -> bool:
        """Whether errors have to be smaller than for another one."""
        return self.range_error < other.range_error


EQUAL = Tolerance(1.0, 0.0, 0.0, deviation=0.0, rounding=0.0)
"""Integers and booleans."""
CHOSEN = Tolerance(1.0, 0.0, 0.0, deviation=0.0, rounding=0.0, agreement=0.9)
"""Places of the largest of values that differ in their last bits."""
VECTOR_ENGINE = Tolerance(0.9999, 0.001, 0.001, deviation=2.0**-14, rounding=2.0**-20)
"""Ops on 24 bits of mantissa."""
MATRIX_ENGINE = Tolerance(0.9995, 0.01, 0.01, deviation=2.0**-10, rounding=2.0**-12)
"""Operands are cut to 11 bits of mantissa, and reciprocals are good to 0.15 %."""
SIXTEEN_BITS = Tolerance(0.999, 0.02, 0.02, deviation=2.0**-6, rounding=2.0**-7)
"""A tensor on the way, an operand in the multiplier or a sum has eight bits of mantissa or less."""
FEW_BITS = Tolerance(0.99, 0.05, 0.05, deviation=2.0**-4, rounding=2.0**-5)
"""An operand in the multiplier has five bits of mantissa, or a reciprocal is good to 4 %."""


def is_narrow(data_type: DataType) -> bool:
    """Whether floats of the type have eight bits of mantissa or less."""
    return data_type.is_float and data_type is not DataType.FLOAT32


def tolerance_of_type(data_type: DataType) -> Tolerance:
    """The closest tolerance that outputs of a type can have."""
    if not data_type.is_float:
        return EQUAL
    # Block floats are no results of programs; if one is, bf16 (to which it is read out) is its
    # measure.
    return SIXTEEN_BITS if is_narrow(data_type) else VECTOR_ENGINE


def loosest(first: Tolerance, *others: Tolerance) -> Tolerance:
    """The one of several tolerances that allows most."""
    return max((first, *others), key=lambda each: each.range_error)


_SQUEEZED = 3.0
"""Sums of a few units come before what saturates at one."""


def squeezed(tolerance: Tolerance) -> Tolerance:
    """The tolerance of what a saturating function makes: errors of its operand pass where it is
    steep, but the range that they are measured by is no longer that of the operand."""
    return replace(tolerance, range_error=_SQUEEZED * tolerance.range_error)
