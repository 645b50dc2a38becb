"""Attributes and operands of calls that nothing has verified yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from xdsl.ir import Attribute, Operation, SSAValue

from ttcodegen.compat.ttnn_modules import name_of
from ttcodegen.dialects.operations.attribute_kinds import INTEGERS, AttributeKind
from ttcodegen.foundation.diagnostics import CompileError

Properties = Mapping[str, Attribute]

T = TypeVar("T")


def given(op: Operation, properties: Properties, name: str, kind: AttributeKind[T]) -> T | None:
    """An attribute of a call, None if it is absent; raises CompileError if it is of another
    kind."""
    attribute = properties.get(name)
    if attribute is None:
        return None
    try:
        return kind.decode(attribute)
    except (ValueError, TypeError, AttributeError, KeyError):
        raise CompileError(
            f"'{name_of(op)}': attribute '{name}' should be {kind.expected}, found {attribute}", op
        ) from None


def divided_operands(
    op: Operation, operands: Sequence[SSAValue], properties: Properties, count: int
) -> list[SSAValue | None]:
    """So many operands, None for each that is left out: those that `operandSegmentSizes` says,
    without it the last ones."""
    sizes = given(op, properties, "operandSegmentSizes", INTEGERS)
    if sizes is None:
        sizes = [1] * len(operands)
    sizes = [*sizes, *[0] * (count - len(sizes))]
    if len(sizes) != count or not {0, 1}.issuperset(sizes) or sum(sizes) != len(operands):
        raise CompileError(
            f"'{name_of(op)}': its {len(operands)} operands are not those of "
            f"operandSegmentSizes {sizes}",
            op,
        )
    values = iter(operands)
    return [next(values) if size else None for size in sizes]
