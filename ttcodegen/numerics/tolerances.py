"""Tolerances of outputs: data types, saturating functions and order of summation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, cast

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.compute_config import Arithmetic
from ttcodegen.dialects.ttnn.program_configs import ProgramConfig
from ttcodegen.ops.core.calls import COMPUTE_CONFIG_ATTRIBUTE
from ttcodegen.ops.core.definition import TTIRDefinition, TTNNDefinition

if TYPE_CHECKING:
    # Descriptions of projects are written with tolerances, and without numpy.
    from ttcodegen.numerics.execution import Function, Step
    from ttcodegen.numerics.rounding import DeviceTensor

# Saturating functions, and the propagation of errors through them.

_UNRESOLVED = 2.0**-9
"""Fraction of a function's range at either end in which bfloat16 cannot resolve the operand."""
_USUAL_OPERANDS = 3.0
"""Typical magnitude of operands: three deviations of a sum of normal numbers."""


@dataclass(frozen=True)
class Saturation:
    """A function that maps any range to a small one, but passes errors near zero.

    Errors of engines are relative to the range of their results. The range of the operand follows
    from the range of this function's results, and bounds the effect of an error of the operand.
    """

    name: str
    low: float
    """Limits of the function."""
    high: float
    slope: float
    """Steepest slope."""
    function: Callable[[float], float]
    inverse: Callable[[float], float]

    def reach(self, low: float, high: float) -> float:
        """Returns the largest effect of an error the size of the operand's range.

        Results are between `low` and `high`; the effect is at least their difference.
        """
        margin = _UNRESOLVED * (self.high - self.low)
        ends = [min(max(end, self.low + margin), self.high - margin) for end in (low, high)]
        return max(self.slope * (self.inverse(ends[1]) - self.inverse(ends[0])), high - low)

    @property
    def usual_part(self) -> float:
        """Returns that effect relative to the range of results, for typical operands."""
        ends = self.function(-_USUAL_OPERANDS), self.function(_USUAL_OPERANDS)
        return self.reach(*ends) / (ends[1] - ends[0])


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def _logit(value: float) -> float:
    return math.log(value / (1 - value))


def _inverse_erf(value: float) -> float:
    # Imported here, since the import takes milliseconds and few programs need it.
    from statistics import NormalDist

    return NormalDist().inv_cdf((value + 1) / 2) / math.sqrt(2)


def _limited(value: float) -> float:
    return min(max(value, -1.0), 1.0)


_SATURATIONS = {
    each.name: each
    for each in (
        Saturation("tanh", -1, 1, 1.0, math.tanh, math.atanh),
        Saturation("sigmoid", 0, 1, 0.25, _sigmoid, _logit),
        Saturation("erf", -1, 1, 2 / math.sqrt(math.pi), math.erf, _inverse_erf),
        Saturation("softsign", -1, 1, 1.0, lambda x: x / (1 + abs(x)), lambda y: y / (1 - abs(y))),
        Saturation(
            "hardsigmoid", 0, 1, 1 / 6, lambda x: (_limited(x / 3) + 1) / 2, lambda y: 6 * y - 3
        ),
        Saturation("hardtanh", -1, 1, 1.0, _limited, lambda y: y),
    )
}


def saturation_of(name: str, parameters: Mapping[str, object]) -> Saturation | None:
    """Returns the saturating function that a call ends in: its own or its fused activation, or
    None.

    `name` is without dialect.
    """
    configs = [given for given in parameters.values() if isinstance(given, ProgramConfig)]
    fused = [config.activation.op_type for config in configs if config.activation is not None]
    for each in (*fused, parameters.get("activation"), name):
        if isinstance(each, str) and each in _SATURATIONS:
            return _SATURATIONS[each]
    return None


# Tolerances of outputs by the precision of their computation.


@dataclass(frozen=True)
class Tolerance:
    """Tolerance of an output."""

    correlation: float
    """Minimum Pearson correlation of outputs that vary."""
    range_error: float
    """Largest error relative to the range of the expected output; infinite for no bound."""
    relative_error: float
    """Largest error of outputs that do not vary, relative to their magnitude."""
    deviation: float
    """Standard deviation relative to the root mean square up to which an output does not vary.

    Below it, correlation would measure rounding.
    """
    rounding: float
    """Error relative to the magnitude that is always allowed."""
    agreement: float = 1.0
    """Minimum fraction of equal integers or booleans."""
    saturation: Saturation | None = None
    """Saturating function applied last: the range is then that of its operand."""

    def between(self, low: float, high: float) -> Tolerance:
        """Returns the tolerance for an expected range, with `range_error` relative to that
        range."""
        if self.saturation is None or high <= low:
            return self
        part = self.saturation.reach(low, high) / (high - low)
        return replace(self, range_error=part * self.range_error, saturation=None)

    def allows_less_than(self, other: Tolerance) -> bool:
        """Returns whether the tolerance is stricter than another one."""
        return self.range_error < other.range_error


EQUAL = Tolerance(1.0, 0.0, 0.0, deviation=0.0, rounding=0.0)
"""Exact equality, for integers and booleans."""
VECTOR_ENGINE = Tolerance(0.9999, 0.001, 0.001, deviation=2.0**-14, rounding=2.0**-20)
"""Tolerance of ops with 24 mantissa bits."""
MATRIX_ENGINE = Tolerance(0.9995, 0.01, 0.01, deviation=2.0**-10, rounding=2.0**-12)
"""Tolerance with operands truncated to 11 mantissa bits, and reciprocals exact to 0.15 %."""
SIXTEEN_BITS = Tolerance(0.999, 0.02, 0.02, deviation=2.0**-6, rounding=2.0**-7)
"""Tolerance with at most eight mantissa bits in an intermediate tensor, multiplier operand or
sum."""
FEW_BITS = Tolerance(0.99, 0.05, 0.05, deviation=2.0**-4, rounding=2.0**-5)
"""Tolerance with five mantissa bits in a multiplier operand, or reciprocals exact to 4 %."""


def is_narrow(data_type: DataType) -> bool:
    """Returns whether floats of the type have at most eight mantissa bits."""
    return data_type.is_float and data_type is not DataType.FLOAT32


def tolerance_of_type(data_type: DataType) -> Tolerance:
    """Returns the strictest tolerance of outputs of a type."""
    if not data_type.is_float:
        return EQUAL
    # Programs do not return block floats; if one did, it would be read out as bf16.
    return SIXTEEN_BITS if is_narrow(data_type) else VECTOR_ENGINE


def loosest(first: Tolerance, *others: Tolerance) -> Tolerance:
    """Returns the loosest of several tolerances."""
    return max((first, *others), key=lambda each: each.range_error)


def squeezed(tolerance: Tolerance, saturation: Saturation | None) -> Tolerance:
    """Returns the tolerance of the result of a saturating function, if there is one."""
    return tolerance if tolerance is EQUAL else replace(tolerance, saturation=saturation)


def usually(tolerance: Tolerance) -> Tolerance:
    """Returns the tolerance for typical operands of saturating functions, where outputs are
    unknown."""
    if tolerance.saturation is None:
        return tolerance
    part = tolerance.saturation.usual_part
    return replace(tolerance, range_error=part * tolerance.range_error, saturation=None)


# Tolerances between two runs of a lowered program with different orders of summation.
#
# A difference in the last bit of a float32 sum is amplified where values are truncated or
# rounded: operands in source registers and the multiplier, sums in narrow destination registers,
# 16-bit tensors. There it may change the last remaining bit. Moved inputs are equal in both runs,
# also after rounding.


def output_tolerances(functions: Mapping[str, Function], name: str) -> list[Tolerance]:
    """Returns the tolerance of each output of the function `name`.

    Args:
        functions: functions of a program by name, with all callees.
        name: the function whose outputs are compared.
    """
    function = functions[name]
    types = [_data_type(function, tensor) for tensor in function.results]
    found = _of_results(functions, function)
    return [_of_output(c, t) for c, t in zip(found, types, strict=True)]


def tensor_tolerance(functions: Mapping[str, Function], name: str, tensor: int) -> Tolerance:
    """Returns the tolerance of an intermediate tensor; EQUAL if it is the same in both runs."""
    function = replace(functions[name], results=(tensor,))
    (found,) = _of_results(functions, function)
    same = found.tolerance is EQUAL
    return EQUAL if same else _of_output(found, _data_type(function, tensor))


def _of_results(functions: Mapping[str, Function], function: Function) -> tuple[_Closeness, ...]:
    """Returns the closeness of the results of a function in two runs."""

    @cache
    def of_calls(callee: str, arguments: tuple[_Closeness, ...]) -> tuple[_Closeness, ...]:
        return of_body(functions[callee], arguments)

    def of_loop(step: Step, operands: Sequence[_Closeness]) -> Sequence[_Closeness]:
        """Returns the closeness of carried tensors, as a fixed point over iterations."""
        flags = 0 if step.attributes else 1
        last = flags + len(step.results)
        carried, captured = operands[flags:last], operands[last:]
        while True:
            after = of_calls(str(step.callee), (*carried, *captured))[flags:]
            joined = [
                each if each.tolerance.range_error > before.tolerance.range_error else before
                for before, each in zip(carried, after, strict=True)
            ]
            if joined == carried:
                return carried
            carried = joined

    def of_body(function: Function, arguments: tuple[_Closeness, ...]) -> tuple[_Closeness, ...]:
        found = dict(zip(function.arguments, arguments, strict=True))
        for step in function.steps:
            operands = [found.get(tensor, _SAME) for tensor in step.operands]
            if step.is_loop:
                found.update(zip(step.results, of_loop(step, operands), strict=True))
                continue
            if step.callee is not None:
                found.update(zip(step.results, of_calls(step.callee, tuple(operands)), strict=True))
                continue
            tolerance = _of_step(step, [operand.tolerance for operand in operands])
            saturation = _saturation_of(step, operands)
            for tensor in (*step.results, *_overwritten(step)):
                rounded = _rounded(tolerance, _data_type(function, tensor))
                found[tensor] = _Closeness(rounded, saturation)
        return tuple([found.get(tensor, _SAME) for tensor in function.results])

    return of_body(function, (_SAME,) * len(function.arguments))


@dataclass(frozen=True)
class _Closeness:
    tolerance: Tolerance
    saturation: Saturation | None = None
    """Saturating function that computed the tensor."""


_SAME = _Closeness(EQUAL)


def _saturation_of(step: Step, operands: Sequence[_Closeness]) -> Saturation | None:
    name = step.name.partition(".")[2]
    if name != "typecast" and _computes(step):
        return saturation_of(name, step.attributes or {})
    return operands[0].saturation if operands else None


def _of_output(found: _Closeness, data_type: DataType) -> Tolerance:
    if found.tolerance is EQUAL:
        return tolerance_of_type(data_type)
    if not data_type.is_float:
        return EQUAL
    tolerance = loosest(found.tolerance, tolerance_of_type(data_type))
    return squeezed(tolerance, found.saturation)


def _overwritten(step: Step) -> tuple[int, ...]:
    """Returns the tensors that an op overwrites."""
    if step.definition is None or step.definition.in_place is None:
        return ()
    return step.groups()[step.definition.in_place]


def _data_type(function: Function, tensor: int) -> DataType:
    return cast("DeviceTensor", function.tensors[tensor]).placement.data_type


def _rounded(tolerance: Tolerance, data_type: DataType) -> Tolerance:
    """Returns the tolerance after rounding to a tensor's type."""
    if tolerance is EQUAL or not is_narrow(data_type):
        return tolerance
    return loosest(tolerance, SIXTEEN_BITS)


def _of_step(step: Step, operands: Sequence[Tolerance]) -> Tolerance:
    """Returns the tolerance of the results of an op, before they are rounded to their types."""
    found = loosest(EQUAL, *operands)
    if not _computes(step):
        return found
    return loosest(found, _of_engine(step, differs=found is not EQUAL))


def _computes(step: Step) -> bool:
    """Returns whether an op computes with floats instead of moving them."""
    definition = step.definition
    if isinstance(definition, TTIRDefinition):
        return not definition.moves and not definition.fills
    return isinstance(definition, TTNNDefinition) and definition.computes


def _of_engine(step: Step, differs: bool) -> Tolerance:
    """Returns the tolerance from an engine's rounding; `differs` if operands differ between
    runs."""
    if step.arithmetic is not None:
        return _of_arithmetic(step.arithmetic, differs)
    definition = step.definition
    in_matrix_engine = (
        definition.matrix_engine
        if isinstance(definition, TTIRDefinition)
        else definition is not None and COMPUTE_CONFIG_ATTRIBUTE in definition.attributes
    )
    return MATRIX_ENGINE if in_matrix_engine else VECTOR_ENGINE


def _of_arithmetic(arithmetic: Arithmetic, differs: bool) -> Tolerance:
    bits = min(arithmetic.first_bits, arithmetic.second_bits)
    if differs and bits < 6:
        return FEW_BITS
    if arithmetic.narrow_sums or (differs and bits < 9):
        return SIXTEEN_BITS
    return MATRIX_ENGINE
