"""Elements of blocks that data movement kernels read and write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import Float32Type, i16, i32
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.tile import FACE_SIDE, TILE_SIDE
from ttcodegen.lang.compiler.python.numbers import (
    Comparison,
    Condition,
    KernelFloat,
    Number,
    is_number,
)
from ttcodegen.lang.compiler.python.translation import KernelTranslator
from ttcodegen.lang.simulator.buffers import DataflowBuffer
from ttcodegen.lang.simulator.elements import (
    INDEX,
    READ,
    WRITE,
    check_element_type,
    check_rank,
    checked_coordinates,
    cut_off,
)

_SWAPS_OPERANDS = {"Gt": False, "Lt": True}
"""Comparisons of floats, and whether their operands are exchanged."""


class ElementCalls:
    """Translation of accesses to elements."""

    def __init__(self, translator: KernelTranslator) -> None:
        self.translator = translator
        self.builder = translator.builder

    def read(self, buffer: DataflowBuffer, address: SSAValue, coords: Sequence[Any]) -> KernelFloat:
        """The value of an element."""
        offset = self._offset(READ, buffer, coords)
        return KernelFloat(
            self.builder.get(
                "blocks.element_value",
                address,
                offset,
                element=_element_type(buffer),
                result_type=Float32Type(),
                name_hint=f"{buffer.name}_element",
            )
        )

    def index(self, buffer: DataflowBuffer, address: SSAValue, coords: Sequence[Any]) -> SSAValue:
        """The value of an element as an index."""
        offset = self._offset(INDEX, buffer, coords)
        element, name = _element_type(buffer), f"{buffer.name}_index"
        return self.builder.get(
            "blocks.element_index", address, offset, element=element, name_hint=name
        )

    def write(
        self, buffer: DataflowBuffer, address: SSAValue, coords: Sequence[Any], value: Any
    ) -> None:
        """Writes a number to an element."""
        offset = self._offset(WRITE, buffer, coords)
        if isinstance(value, int | float):
            value = cut_off(float(value), buffer.data_type)
        number = self.translator.arithmetic.float_value(value)
        if number is None:
            self.translator.refuse(f"{WRITE} writes a number, not a {type(value).__name__}")
        element = _element_type(buffer)
        self.builder.op("blocks.set_element_value", address, offset, number, element=element)

    def _offset(self, what: str, buffer: DataflowBuffer, coords: Sequence[Any]) -> Number:
        """The place of an element in the memory of a block, in elements."""
        check_element_type(what, buffer)
        check_rank(what, buffer, len(coords))
        if not all(is_number(each) for each in coords):
            self.translator.refuse(f"the coordinates of {what} are integers")
        arithmetic = self.translator.arithmetic
        if all(isinstance(each, int) for each in coords):
            checked_coordinates(what, buffer, coords)
        if not buffer.is_tiled:
            *outer, column = coords
            row = arithmetic.index(outer, buffer.unit_shape)
            distance = buffer.unit_bytes // buffer.element_bytes
            return arithmetic.add(arithmetic.multiply(row, distance), column)
        *outer, row, column = coords
        tile_row, tile_column = (self._divided(each) for each in (row, column))
        tile = arithmetic.index([*outer, tile_row, tile_column], buffer.shape)
        if isinstance(tile, int) and isinstance(row, int) and isinstance(column, int):
            return tile * TILE_SIDE * TILE_SIDE + _offset_in_tile(row, column)
        return self.builder.get("blocks.block_offset", tile, row, column)

    def _divided(self, place: Number) -> Number:
        found = self.translator.arithmetic.binary("FloorDiv", place, TILE_SIDE)
        if found is None:
            self.translator.refuse("the coordinates of elements are 0 or more")
        return found

    def comparison(self, symbol: str, left: Any, right: Any) -> Condition:
        """A comparison of floats."""
        operands = [self.translator.arithmetic.float_value(each) for each in (left, right)]
        first, second = operands
        if symbol not in _SWAPS_OPERANDS or first is None or second is None:
            self.translator.refuse("kernels compare floats by > and < only")
        if _SWAPS_OPERANDS[symbol]:
            first, second = second, first
        return Comparison("ne", self.builder.get("blocks.is_greater", first, second), 0)


def _element_type(buffer: DataflowBuffer) -> Any:
    return i32 if buffer.data_type is DataType.FLOAT32 else i16


def _offset_in_tile(row: int, column: int) -> int:
    """The place of an element in its tile, which has four faces."""
    row, column = row % TILE_SIDE, column % TILE_SIDE
    face = row // FACE_SIDE * 2 + column // FACE_SIDE
    return (face * FACE_SIDE + row % FACE_SIDE) * FACE_SIDE + column % FACE_SIDE
