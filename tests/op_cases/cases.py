"""Every op over its element types, ranks and edge shapes, made by the recipes of random programs.

A recipe that is given what to take for its first operand gives one case; what it chooses besides
(attributes, dimensions, other operands) follows from a seed. All cases of an op are side by side
in one function, so that building the C++ of all ops takes one program.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from xdsl.dialects.builtin import Float16Type, Float64Type
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from tests.random_programs.choices import SeededChoices
from tests.random_programs.generator import (
    MOST_ELEMENTS,
    Generator,
    Recipe,
    Shape,
    i8,
    i16,
    i32,
    sliced,
)
from tests.random_programs.recipes import RECIPES
from tests.random_programs.witnesses import Rejected
from ttcodegen.dialects.core.datatypes import bf16, f32, i1, shape_of, si32, ui8, ui16, ui32

ELEMENTS: tuple[Attribute, ...] = (
    *(f32, bf16, i32, ui32, i1),
    *(si32, ui16, ui8, i8, i16, Float16Type(), Float64Type()),
)
KINDS: dict[str, Shape] = {
    "odd": (2, 1, 3, 2, 33, 5),
    "tiles": (1, 2, 1, 1, 32, 64),
    "ones": (1,) * 6,
    "long": (1, 1, 2, 1, 3, 70),
}
"""Sizes by what is at the edge; a tensor of a lower rank has the last of them."""
_SEEDS = 6
"""Attempts of a recipe before a case counts as impossible."""
_VARIANTS = {"typecast": 8}
"""Cases per type, rank and kind of an op with many other choices (default 1)."""
_DIMENSIONS = frozenset("dim dimension dim0 dim1 dim_arg dimensions".split())
"""Attributes that name dimensions, which may be counted from the end."""


class CaseGenerator(Generator):
    """Makes operands of one element type, rank and kind of sizes; others follow from a seed."""

    def __init__(self, seed: int, element: Attribute, rank: int, sizes: Shape) -> None:
        super().__init__(SeededChoices(seed))
        self._element, self._rank, self._sizes = element, rank, sizes
        self._negative = seed % 2 == 1
        self._picked = False

    def pick(self, options: Sequence[Any]) -> Any:
        if not isinstance(options[0], Attribute) or self._picked:
            return super().pick(options)
        self._picked = True
        if self._element not in options:
            raise Rejected("the op is not for this type")
        return self._element

    def shape(self, low: int = 0, high: int = 6, most: int = MOST_ELEMENTS) -> Shape:
        rank = min(max(self._rank, low), high)
        shape = list(self._sizes[len(self._sizes) - rank :])
        while prod(shape) > most:
            largest = shape.index(max(shape))
            shape[largest] = -(-shape[largest] // 2)
        return tuple(shape)

    def existing(self, fits: Callable[[SSAValue], bool]) -> SSAValue | None:
        """Each case has operands of its own."""
        return None

    def source(self, shape: Shape, element: Attribute) -> SSAValue:
        return self.argument(shape, element)

    def apply(
        self,
        name: str,
        operands: Sequence[SSAValue | Sequence[SSAValue] | None],
        results: Attribute | Sequence[Attribute],
        **attributes: Any,
    ) -> list[SSAValue]:
        if self._negative and isinstance(operands[0] if operands else None, SSAValue):
            assert isinstance(operands[0], SSAValue)
            counted = counted_from_the_end(attributes, len(shape_of(operands[0].type)))
            try:
                return super().apply(name, operands, results, **counted)
            except VerifyException:
                pass  # The op counts from the front only.
        return super().apply(name, operands, results, **attributes)


def counted_from_the_end(attributes: dict[str, Any], rank: int) -> dict[str, Any]:
    """The attributes of an op with its dimensions as negative numbers."""

    def negative(value: Any) -> Any:
        if isinstance(value, list):
            return [each - rank for each in value]
        return value - rank if isinstance(value, int) and 0 <= value < rank else value

    return {
        key: negative(value) if key in _DIMENSIONS else value for key, value in attributes.items()
    }


@dataclass(frozen=True)
class Case:
    """One op with operands of its own."""

    element: Attribute
    rank: int
    kind: str
    generator: Generator


def cases(name: str) -> Iterator[Case]:
    """All cases of an op: each element type, and each rank with each kind of sizes."""
    wanted = [
        (element, 2 + index % 3, list(KINDS)[index % len(KINDS)])
        for index, element in enumerate(ELEMENTS)
    ]
    usual = [element for element in ELEMENTS if _made(name, element, 2, "odd") is not None][:2]
    wanted += [
        (element, rank, kind)
        for rank in range(7)
        for kind, element in zip(KINDS, (*usual, *usual), strict=False)
    ]
    seen: set[tuple[Attribute, int, str]] = set()
    for element, rank, kind in wanted:
        if (element, rank, kind) in seen:
            continue
        seen.add((element, rank, kind))
        for variant in range(_VARIANTS.get(name, 1)):
            found = _made(name, element, rank, kind, variant)
            if found is not None:
                yield Case(element, rank, kind, found)


def _made(
    name: str, element: Attribute, rank: int, kind: str, variant: int = 0
) -> Generator | None:
    recipe: Recipe = RECIPES[name]
    start = zlib.crc32(f"{name} {element} {rank} {kind} {variant}".encode())
    for seed in range(start, start + _SEEDS):
        generator = CaseGenerator(seed, element, rank, KINDS[kind])
        if generator.attempt(recipe) and _is_case(name, generator):
            return generator
    return None


def _is_case(name: str, generator: Generator) -> bool:
    return any(op.definition.short_name == name for op in generator.ops)


def function_of(name: str, found: Sequence[Case]) -> FuncOp:
    """A function with all cases of an op; the results of each are results of the function."""
    arguments = {
        value: attributes
        for case in found
        for value, attributes in case.generator.drawn_arguments().items()
    }
    ops = [op for case in found for op in case.generator.ops]
    used = {value for op in ops for value in op.operands}
    results = [value for op in ops for value in op.results if value not in used]
    return sliced(f"cases_{name}", arguments, ops, results)
