"""Tiles of circular buffers, and how they come into destination registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ttcodegen.conversions.ttir_to_ttmetal.grouping.operand_pairs import (
    Operand,
    OperandPair,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.compute import ComputeKernel, load_pair
from ttcodegen.dialects.ttkernel.attributes import BroadcastType
from ttcodegen.lang.compiler.compute.expressions import (
    Broadcast,
    Expression,
    Picked,
    Reshaped,
    Resident,
    Transposed,
)
from ttcodegen.lang.compiler.python.numbers import Arithmetic, Number

_BROADCASTS = {"row": BroadcastType.ROW, "col": BroadcastType.COL, "scalar": BroadcastType.SCALAR}


@dataclass(frozen=True)
class Source:
    """Location of an expression's tile."""

    buffer: str
    index: Number
    way: str
    """copy, transpose, or what is repeated inside of it: row, col, scalar"""

    @property
    def operand(self) -> Operand | None:
        """The tile as the matrix engine reads it beside another one; None if it cannot."""
        if self.way == "transpose":
            return None
        return Operand(self.buffer, self.index, _BROADCASTS.get(self.way))


def source_of(
    arithmetic: Arithmetic, expression: Expression, position: Sequence[Number], flat: bool
) -> Source:
    """The tile that an expression reads at a position; `flat` if that is its number in it."""
    if flat:
        while not isinstance(expression, Resident):
            (expression,) = expression.operands
        return Source(expression.buffer, position[0], "copy")
    way = "copy"
    places = list(position)
    while not isinstance(expression, Resident):
        match expression:
            case Broadcast(_, of, kind):
                places = [0 if size == 1 else place
                          for place, size in zip(places, of.shape, strict=True)]  # fmt: skip
                way = kind or way
            case Transposed():
                places = places[::-1]
                way = "transpose"
            case Picked(_, _, fixed):
                for axis, place in fixed:
                    places[axis] = place
            case Reshaped(shape, of, kept):
                if len(shape) > len(of.shape):
                    places = [places[axis] for axis in kept]
                else:
                    wide: list[Number] = [0] * len(of.shape)
                    for axis, place in zip(kept, places, strict=True):
                        wide[axis] = place
                    places = wide
            case _:
                raise AssertionError(type(expression).__name__)
        (expression,) = expression.operands
    return Source(expression.buffer, arithmetic.index(places, expression.shape), way)


def load(kernel: ComputeKernel, source: Source | OperandPair, register: int) -> None:
    """Brings a tile into a register: as it is, or changed on its way."""
    if isinstance(source, OperandPair):
        load_pair(kernel, source, register)
        return
    buffer = source.buffer
    if source.way == "copy":
        kernel.load(buffer, register, source.index)
        return
    if source.way == "transpose":
        kernel.op("reconfig_data_format_srca", buffer)
        kernel.op("transpose_wh_init_short", buffer)
        kernel.op("transpose_wh_tile", buffer, source.index, register)
    else:
        kind = _BROADCASTS[source.way]
        kernel.op("reconfig_data_format", buffer, buffer)
        # Within destination registers: unary_bcast_init would reset them.
        kernel.op("blocks.unary_bcast_init_short", buffer, bcast_type=kind)
        kernel.op("blocks.address_register", register)
        kernel.op("unary_bcast", buffer, source.index, register, bcast_type=kind)
        kernel.op("unary_bcast_uninit", buffer, bcast_type=kind)
    kernel.forget_formats()
