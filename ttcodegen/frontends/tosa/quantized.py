"""Arithmetic on integers that represent fractions: zero points, scales and rounding.

The device multiplies matrices and convolves in floats only. Integers of 8 bits and their sums are
exact in float32 as long as these have 24 bits, which those of most layers do.
"""

from __future__ import annotations

import numpy as np
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, numpy_name, shape_of
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.source_ops import SourceOp
from ttcodegen.frontends.tosa.operands import flag, integers, zero_point
from ttcodegen.frontends.translation import Translator, constant_of


def is_integer(value: SSAValue) -> bool:
    """True if the elements are integers."""
    return element_of(value.type).name == "integer_type"


def centred(build: Translator, op: SourceOp, index: int, zero: int) -> SSAValue:
    """The operand at `index` as floats, without the zero point that is the operand at `zero`;
    itself if it holds floats."""
    value = op.operands[index]
    if not is_integer(value):
        return value
    offset = zero_point(op, zero)
    value = build.typecast(value, f32)
    return value if offset == 0 else build.like("subtract", value, build.number(offset, value))


def shifted(build: Translator, value: SSAValue, shift: int) -> SSAValue:
    """Divided by two to the power of `shift`, rounded upwards at halves."""
    half = build.like("add", value, build.number(1 << (shift - 1), value))
    return build.like("right_shift", half, build.number(shift, value))


def rescale(build: Translator, op: SourceOp) -> SSAValue:
    """(input - zero point) * multiplier / 2^shift, rounded upwards at halves, + zero point."""
    multiplier, shift = (_constants(op, i, name) for i, name in ((1, "multiplier"), (2, "shift")))
    scale = multiplier / np.exp2(shift)
    value = op.operands[0]
    shape = shape_of(value.type)
    offset, target = _zero_points(op)
    centre = build.typecast(value, f32)
    if offset:
        centre = build.like("subtract", centre, build.number(offset, centre))
    factor = scale.astype(np.float32).reshape([1] * (len(shape) - 1) + [-1] if shape else [])
    scaled = build.like("multiply", centre, build.constant(factor, f32))
    result = build.like("floor", build.like("add", scaled, build.number(0.5, scaled)))
    if target:
        result = build.like("add", result, build.number(target, result))
    low, high = _range(op)
    return build.typecast(build.like("clamp_scalar", result, min=low, max=high), op.result_element)


def _constants(op: SourceOp, index: int, name: str) -> np.ndarray:
    if op.given(name) is not None:
        return np.asarray(integers(op, index, name), dtype=np.float64)
    found = constant_of(op.operands[index]) if index < len(op.operands) else None
    if found is None:
        raise CompileError(f"{op.name}: the {name} has to be constant")
    return found.astype(np.float64).reshape(-1)


def _zero_points(op: SourceOp) -> tuple[int, int]:
    if op.given("input_zp") is None:
        return zero_point(op, 3), zero_point(op, 4)
    return integers(op, 3, "input_zp")[0], integers(op, 4, "output_zp")[0]


def _range(op: SourceOp) -> tuple[float, float]:
    """Value range of the result's elements."""
    limits = integer_limits(op.result_element, flag(op, "output_unsigned"))
    if limits is None:
        raise CompileError(f"{op.name}: elements of type {op.result_element} are not supported")
    return limits


def integer_limits(element: Attribute, unsigned: bool = False) -> tuple[float, float] | None:
    """The smallest and the largest integer of a type, as floats hold them; None for other types."""
    name = numpy_name(element)
    if name is None or np.dtype(name).kind not in "iu":
        return None
    if unsigned:
        name = f"u{name.removeprefix('u')}"
    limits = np.iinfo(name)
    return float(limits.min), float(limits.max)
