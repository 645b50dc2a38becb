"""Operation counts of ops, as rules that definitions name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

Shape = tuple[int, ...]

VECTOR_CYCLES = 4
"""Default vector engine cycles of an elementwise op for 32 elements."""


@dataclass(frozen=True)
class OpShapes:
    """Shapes and types that an op's operation count depends on."""

    attributes: Mapping[str, Any]
    """Those that are integers, booleans and lists of integers; others may be missing."""
    operands: Sequence[Shape]
    results: Sequence[Shape]

    @property
    def produced(self) -> int:
        """Elements of all results."""
        return sum(map(prod, self.results))

    @property
    def taken(self) -> int:
        """Elements of the largest operand."""
        return max(map(prod, self.operands))


FlopRule = Callable[[OpShapes], int]
"""Multiplications and additions, and the like on integers, of an op with operands and results."""


def no_flops(shapes: OpShapes) -> int:
    """Of an op that computes nothing with the elements that it moves or makes."""
    return 0


def per_element(steps: int) -> FlopRule:
    """So many steps for each element of the larger of operands and results."""

    def rule(shapes: OpShapes) -> int:
        return steps * max(shapes.taken, shapes.produced)

    return rule


one_per_element = per_element(1)


def product_flops(shapes: OpShapes) -> int:
    """A matrix product, with the addition of its bias."""
    first = (1, 1, *shapes.operands[0])
    summed = first[-2] if shapes.attributes.get("transpose_a") else first[-1]
    bias = shapes.produced if len(shapes.operands) > 2 else 0
    return 2 * shapes.produced * summed + bias


def attention_flops(shapes: OpShapes) -> int:
    """Scores and their product with the values: two products of the same size."""
    return 4 * prod(shapes.operands[0]) * shapes.operands[1][-2]


def window_flops(shapes: OpShapes) -> int:
    """A step for each element of the window of an element of the result."""
    return shapes.produced * prod(shapes.attributes.get("kernel_size", (1,)))


def convolution_flops(shapes: OpShapes) -> int:
    """The weights of an output channel are all products that one element of it sums up."""
    channels = int(shapes.attributes.get("out_channels", 0)) or shapes.operands[-1][-1]
    return 2 * shapes.produced * prod(shapes.operands[1]) // max(channels, 1)


def transposed_convolution_flops(shapes: OpShapes) -> int:
    """The weights of an input channel are all products that one element of it is a factor of."""
    channels = int(shapes.attributes.get("in_channels", 1))
    return 2 * prod(shapes.operands[0]) * prod(shapes.operands[1]) // max(channels, 1)
