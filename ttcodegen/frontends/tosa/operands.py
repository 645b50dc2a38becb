"""TOSA parameters that are constant operands or, in earlier versions, attributes."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.operations.attribute_kinds import INTEGERS
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.source_ops import SourceOp
from ttcodegen.frontends.translation import constant_of


def integers(op: SourceOp, index: int, *names: str) -> list[int]:
    """A list of integers: the attribute of one of these names, else the operand at `index`.

    Raises:
        CompileError: if neither is there, or the operand is no constant.
    """
    given = op.given(*names)
    if given is not None:
        try:
            return INTEGERS.decode(given)
        except (TypeError, ValueError):
            raise CompileError(
                f"{op.name}: attribute '{names[0]}' should be a list of integers, found {given}"
            ) from None
    if index >= len(op.operands):
        raise CompileError(f"{op.name} needs the attribute '{names[0]}'")
    found = constant_of(op.operands[index])
    if found is None:
        raise CompileError(
            f"{op.name}: '{names[0]}' has to be constant",
            remedy="export the model for inputs of fixed shapes",
        )
    return [int(value) for value in found.reshape(-1)]


def integer(op: SourceOp, *names: str) -> int:
    """An attribute that is one integer."""
    given = op.given(*names)
    if not isinstance(given, IntegerAttr):
        raise CompileError(f"{op.name}: attribute '{names[0]}' should be an integer")
    return given.value.data


def flag(op: SourceOp, name: str) -> bool:
    """An attribute that is true or, if it is absent, false."""
    given = op.given(name)
    return isinstance(given, IntegerAttr) and given.value.data != 0


def number(attribute: Attribute | None) -> float | int | None:
    """A number, None for anything else."""
    if isinstance(attribute, IntegerAttr | FloatAttr):
        return attribute.value.data
    return None


def zero_point(op: SourceOp, index: int) -> int:
    """The zero point that the operand at `index` is; 0 if there is none.

    Raises:
        CompileError: if it is no constant.
    """
    if index >= len(op.operands):
        return 0
    return round(scalar(op, op.operands[index], "a zero point"))


def scalar(op: SourceOp, value: SSAValue, what: str) -> float | int:
    """The number that all elements of a constant are.

    Raises:
        CompileError: if it is no constant, or has several numbers.
    """
    found = constant_of(value)
    if found is None or found.size == 0 or not np.all(found == found.reshape(-1)[0]):
        raise CompileError(f"{op.name}: {what} has to be one constant number")
    return found.reshape(-1)[0].item()
