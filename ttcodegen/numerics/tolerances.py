"""How far outputs may be from what was expected, by how exactly they were computed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.numerics.saturation import Saturation


@dataclass(frozen=True)
class Tolerance:
    """How far an output may be from what was expected."""

    correlation: float
    """The lowest accepted Pearson correlation of outputs that vary."""
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
    """The minimum fraction of integers or booleans that has to be equal."""
    saturation: Saturation | None = None
    """The saturating function that came last: the range is then that of its operand."""

    def between(self, low: float, high: float) -> Tolerance:
        """The tolerance of an output that is expected to be there, with an error that is a part of
        that range."""
        if self.saturation is None or high <= low:
            return self
        part = self.saturation.reach(low, high) / (high - low)
        return replace(self, range_error=part * self.range_error, saturation=None)

    def allows_less_than(self, other: Tolerance) -> bool:
        """True if errors have to be smaller than for another one."""
        return self.range_error < other.range_error


EQUAL = Tolerance(1.0, 0.0, 0.0, deviation=0.0, rounding=0.0)
"""Integers and booleans."""
VECTOR_ENGINE = Tolerance(0.9999, 0.001, 0.001, deviation=2.0**-14, rounding=2.0**-20)
"""Ops on 24 bits of mantissa."""
MATRIX_ENGINE = Tolerance(0.9995, 0.01, 0.01, deviation=2.0**-10, rounding=2.0**-12)
"""Operands are cut to 11 bits of mantissa, and reciprocals are good to 0.15 %."""
SIXTEEN_BITS = Tolerance(0.999, 0.02, 0.02, deviation=2.0**-6, rounding=2.0**-7)
"""A tensor on the way, an operand in the multiplier or a sum has eight bits of mantissa or less."""
FEW_BITS = Tolerance(0.99, 0.05, 0.05, deviation=2.0**-4, rounding=2.0**-5)
"""An operand in the multiplier has five bits of mantissa, or a reciprocal is good to 4 %."""


def is_narrow(data_type: DataType) -> bool:
    """True if floats of the type have eight bits of mantissa or less."""
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


def squeezed(tolerance: Tolerance, saturation: Saturation | None) -> Tolerance:
    """The tolerance of what a saturating function makes, if one came last."""
    return tolerance if tolerance is EQUAL else replace(tolerance, saturation=saturation)


def usually(tolerance: Tolerance) -> Tolerance:
    """The tolerance where outputs are not known yet: for operands of saturating functions as they
    usually are."""
    if tolerance.saturation is None:
        return tolerance
    part = tolerance.saturation.usual_part
    return replace(tolerance, range_error=part * tolerance.range_error, saturation=None)
