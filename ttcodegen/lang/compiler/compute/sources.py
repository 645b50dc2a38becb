"""Tiles of circular buffers, and their loads into destination registers."""

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
    Reshaped,
    Resident,
    Selected,
    Transposed,
)
from ttcodegen.lang.compiler.python.numbers import Arithmetic, Number

_BROADCASTS = {"row": BroadcastType.ROW, "col": BroadcastType.COL, "scalar": BroadcastType.SCALAR}


@dataclass(frozen=True)
class Source:
    """A tile of a circular buffer, and the transformation applied when it is unpacked."""

    buffer: str
    index: Number
    transform: str
    """"copy", "transpose", or the broadcast inside the tile: "row", "col", "scalar"."""

    @property
    def operand(self) -> Operand | None:
        """The tile as a direct operand of the matrix engine; None if that cannot transpose it."""
        if self.transform == "transpose":
            return None
        return Operand(self.buffer, self.index, _BROADCASTS.get(self.transform))


def source_of(
    arithmetic: Arithmetic, expression: Expression, position: Sequence[Number], flat: bool
) -> Source:
    """Finds the tile that an expression reads at a position, or at a linear index if `flat`."""
    if flat:
        while not isinstance(expression, Resident):
            (expression,) = expression.operands
        return Source(expression.buffer, position[0], "copy")
    transform = "copy"
    indices = list(position)
    while not isinstance(expression, Resident):
        match expression:
            case Broadcast(_, of, kind):
                indices = [0 if size == 1 else index
                          for index, size in zip(indices, of.shape, strict=True)]  # fmt: skip
                transform = kind or transform
            case Transposed():
                indices = indices[::-1]
                transform = "transpose"
            case Selected(_, _, fixed):
                for axis, index in fixed:
                    indices[axis] = index
            case Reshaped(shape, of, kept):
                if len(shape) > len(of.shape):
                    indices = [indices[axis] for axis in kept]
                else:
                    expanded: list[Number] = [0] * len(of.shape)
                    for axis, index in zip(kept, indices, strict=True):
                        expanded[axis] = index
                    indices = expanded
            case _:
                raise AssertionError(type(expression).__name__)
        (expression,) = expression.operands
    return Source(expression.buffer, arithmetic.index(indices, expression.shape), transform)


def load(kernel: ComputeKernel, source: Source | OperandPair, register: int) -> None:
    """Loads a tile into a register, broadcasting or transposing it if required."""
    if isinstance(source, OperandPair):
        load_pair(kernel, source, register)
        return
    buffer = source.buffer
    if source.transform == "copy":
        kernel.load(buffer, register, source.index)
        return
    if source.transform == "transpose":
        kernel.op("reconfig_data_format_srca", buffer)
        kernel.op("transpose_wh_init_short", buffer)
        kernel.op("transpose_wh_tile", buffer, source.index, register)
    else:
        kind = _BROADCASTS[source.transform]
        kernel.op("reconfig_data_format", buffer, buffer)
        # The registers are acquired already: unary_bcast_init would reset them.
        kernel.op("blocks.unary_bcast_init_short", buffer, bcast_type=kind)
        kernel.op("blocks.address_register", register)
        kernel.op("unary_bcast", buffer, source.index, register, bcast_type=kind)
        kernel.op("unary_bcast_uninit", buffer, bcast_type=kind)
    kernel.forget_formats()
