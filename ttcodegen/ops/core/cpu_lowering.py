"""Lowering of an op to a C++ function of the project's `support/cpu`.

The C++ function is called `cpu::<op>` unless the op's row says another name. It takes the types of
the results, the operands, and the attributes in braces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.core.constant_values import number_as

CpuOperand = SSAValue | Sequence[SSAValue] | None
"""A tensor, several of them as one argument, or none where the function takes one that may be
absent."""


@dataclass(frozen=True)
class CpuCall:
    """A call of a function of `support/cpu`."""

    function: str
    """Without its namespace."""
    header: str
    """The stem of the header."""
    operands: tuple[CpuOperand, ...]
    attributes: tuple[str, ...]
    """C++ in braces, one for each structure that the function takes."""
    operand_names: tuple[str, ...]


CpuLowering = Callable[[CatalogueOp], CpuCall]
"""Gives the call for an op."""

CpuAttributes = Callable[[CatalogueOp], Mapping[str, Any]]
"""The fields of a structure, in the order of their declaration. None means the default."""


def cpu_call(
    header: str,
    *structures: CpuAttributes,
    function: str | Callable[[CatalogueOp], str] = "",
    operands: Sequence[str] | None = None,
) -> CpuLowering:
    """The lowering to a call.

    Args:
        header: the stem of the header with the function.
        structures: what the attributes of the op are in C++.
        function: the name of the function, if it is not that of the op.
        operands: the names of those that the function takes, if it does not take all.
    """

    def lower(op: CatalogueOp) -> CpuCall:
        specs = op.definition.operands
        groups = op.operand_groups()
        names = [spec.name for spec in specs] if operands is None else operands
        counts = {spec.name: spec.count for spec in specs}
        given: list[CpuOperand] = []
        for name in names:
            group = groups[name]
            if counts[name] == "variadic":
                given.append(group)
            else:
                given.append(group[0] if group else None)
        name = function(op) if callable(function) else function or op.definition.short_name
        fields = tuple(_braced(structure(op)) for structure in structures)
        return CpuCall(name, header, tuple(given), fields, tuple(names))

    return lower


def same_attributes(*names: str) -> CpuAttributes:
    """Fields with the names and values of attributes."""
    return lambda op: {name: op.parameter(name) for name in names}


def counted_from_front(op: CatalogueOp, name: str, operand: str | None = None) -> int:
    """An attribute that names a dimension of an operand (the first, if none is given)."""
    rank = len(op.shape(operand or op.definition.operands[0].name))
    return op.parameter(name) % max(rank, 1)


def dimension(name: str, operand: str | None = None) -> CpuAttributes:
    """The field `dim` of an attribute that names a dimension of an operand."""
    return lambda op: {"dim": counted_from_front(op, name, operand)}


def number_of(value: float, data_type: DataType) -> float | int:
    """A number as an element of that type."""
    return float(value) if data_type.is_float else int(number_as(value, data_type.numpy))


def element_type(data_type: DataType) -> str:
    """The `support::ElementType` of a tensor on the host; block floats are floats there."""
    name = "float32" if data_type.is_block_float else data_type.numpy
    return f"ElementType::{name}"


def _braced(fields: Mapping[str, Any]) -> str:
    given = [f".{name} = {_text(value)}" for name, value in fields.items() if value is not None]
    return "{" + ", ".join(given) + "}"


def _text(value: Any) -> str:
    from ttcodegen.emitc.spelling import float_value, string_literal

    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return float_value(value).text
        case str():
            return string_literal(value)
        case _:
            return "{" + ", ".join(map(_text, value)) + "}"
