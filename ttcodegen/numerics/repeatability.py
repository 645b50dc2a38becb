"""How closely two runs of a lowered program meet that sum up the same in other orders.

What differs in the last bit of a float32 sum stays there until something is cut or rounded:
operands in the source registers and in the multiplier, sums in narrow destination registers,
tensors of 16 bits. Then it may make out the last of the bits that are left. What is only moved from
an input is the same in both runs, and so is what is left of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import cast

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.arithmetic import Arithmetic
from ttcodegen.numerics.device_tensor import DeviceTensor
from ttcodegen.numerics.execution import Function, Step
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
)
from ttcodegen.ops.core.calls import COMPUTE_CONFIG_ATTRIBUTE
from ttcodegen.ops.core.definition import TTIRDefinition, TTNNDefinition


def output_tolerances(functions: Mapping[str, Function], name: str) -> list[Tolerance]:
    """The tolerance of each output of the function `name`.

    Args:
        functions: of a program, by name: the function and what it calls.
        name: of the function whose outputs are compared.
    """
    function = functions[name]
    types = [_data_type(function, tensor) for tensor in function.results]
    found = _of_results(functions, function)
    return [_of_output(c, t) for c, t in zip(found, types, strict=True)]


def tensor_tolerance(functions: Mapping[str, Function], name: str, tensor: int) -> Tolerance:
    """The same of a tensor on the way; EQUAL if it is the same in both runs."""
    function = replace(functions[name], results=(tensor,))
    (found,) = _of_results(functions, function)
    same = found.tolerance is EQUAL
    return EQUAL if same else _of_output(found, _data_type(function, tensor))


def _of_results(functions: Mapping[str, Function], function: Function) -> tuple[_Closeness, ...]:
    """How closely two runs meet in the results of a function."""

    @cache
    def of_calls(callee: str, arguments: tuple[_Closeness, ...]) -> tuple[_Closeness, ...]:
        return of_body(functions[callee], arguments)

    def of_body(function: Function, arguments: tuple[_Closeness, ...]) -> tuple[_Closeness, ...]:
        found = dict(zip(function.arguments, arguments, strict=True))
        for step in function.steps:
            operands = [found.get(tensor, _SAME) for tensor in step.operands]
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
    """The saturating function that made the tensor."""


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
    """The tensors that an op overwrites."""
    if step.definition is None or step.definition.in_place is None:
        return ()
    return step.groups()[step.definition.in_place]


def _data_type(function: Function, tensor: int) -> DataType:
    return cast(DeviceTensor, function.tensors[tensor]).placement.data_type


def _rounded(tolerance: Tolerance, data_type: DataType) -> Tolerance:
    """What becomes of a difference in a tensor of a type."""
    if tolerance is EQUAL or not is_narrow(data_type):
        return tolerance
    return loosest(tolerance, SIXTEEN_BITS)


def _of_step(step: Step, operands: Sequence[Tolerance]) -> Tolerance:
    """How closely two runs meet in the results of an op, before they are rounded to their types."""
    found = loosest(EQUAL, *operands)
    if not _computes(step):
        return found
    return loosest(found, _of_engine(step, differs=found is not EQUAL))


def _computes(step: Step) -> bool:
    """True if an op computes with floats rather than to move them."""
    definition = step.definition
    if isinstance(definition, TTIRDefinition):
        return not definition.moves and not definition.fills
    return isinstance(definition, TTNNDefinition) and definition.computes


def _of_engine(step: Step, differs: bool) -> Tolerance:
    """What an engine makes of operands that are the same in both runs or differ."""
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
