"""Block expressions as trees: what a compute kernel has to compute when a result is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.lang.simulator.expressions import no_comparison
from ttcodegen.lang.simulator.shapes import Shape
from ttcodegen.ops.core.lowering import Tile, TileBuilder

INTEGERS = (DataType.INT32, DataType.UINT32)
"""Integers that kernels compute with."""

TileFunction = Callable[[TileBuilder, Sequence[Tile]], Tile]


@dataclass(eq=False)
class Expression:
    """A block expression of a shape in tiles."""

    shape: Shape
    data_type: DataType = field(init=False)
    """Of its elements in the registers: integers, or float32 whatever floats its blocks hold."""
    elements: Shape | None = field(init=False)
    """The shape of a row-major expression, whose elements fill tiles in their order; None of one
    that is tiled."""

    def __post_init__(self) -> None:
        packed = (each.elements for each in self.operands if each.elements is not None)
        self.elements = next(packed, None)
        types = (each.data_type for each in self.operands)
        self.data_type = next((t for t in types if not t.is_float), DataType.FLOAT32)

    @property
    def operands(self) -> tuple[Expression, ...]:
        """Operands of the expression."""
        return ()

    @property
    def units(self) -> Shape:
        """Its shape as the program counts it: in tiles, or in elements of row-major blocks."""
        return self.shape if self.elements is None else self.elements

    def __lt__(self, other: object) -> bool:
        raise no_comparison()

    __le__ = __gt__ = __ge__ = __lt__


@dataclass(eq=False)
class Resident(Expression):
    """Tiles at the front of a circular buffer."""

    buffer: str
    holds: DataType = field(default=DataType.FLOAT32, kw_only=True)
    """Data type of the elements in the registers."""
    elements: Shape | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self.data_type = self.holds


@dataclass(eq=False)
class Fill(Expression):
    """One number everywhere; an integer too, where integers are computed with. The kernel may
    compute it, as a float or as the bits of one."""

    number: float | SSAValue
    holds: DataType = field(default=DataType.FLOAT32, kw_only=True)
    elements: Shape | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self.data_type = self.holds


@dataclass(eq=False)
class Apply(Expression):
    """A function of the elements, tile by tile."""

    function: TileFunction
    of: tuple[Expression, ...]

    @property
    def operands(self) -> tuple[Expression, ...]:
        return self.of


@dataclass(eq=False)
class Broadcast(Expression):
    """Tiles repeated along dimensions, and in each tile the first row, column or element."""

    of: Expression
    kind: str
    """Broadcast inside tiles: "row", "col", "scalar", or none."""

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.of,)


@dataclass(eq=False)
class Transposed(Expression):
    """Tiles and their elements, rows for columns."""

    of: Expression

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.of,)


@dataclass(eq=False)
class Reshaped(Expression):
    """The same tiles; dimensions of 1 are added or removed."""

    of: Expression
    kept: tuple[int, ...]
    """The dimensions of the longer shape that the shorter one has."""

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.of,)


@dataclass(eq=False)
class Picked(Expression):
    """The tiles at one position along some dimensions, in which its own size is 1."""

    of: Expression
    places: tuple[tuple[int, int], ...]
    """The dimensions, and the position in each."""

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.of,)


@dataclass(eq=False)
class Product(Expression):
    """The product of matrices of tiles."""

    left: Expression
    right: Expression

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.left, self.right)


@dataclass(eq=False)
class Reduction(Expression):
    """Tiles, and their elements, brought together along dimensions."""

    of: Expression
    kind: str
    """sum or max"""
    dims: tuple[int, ...]

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.of,)


def parts_of(
    expression: Expression, through: type[Expression] = Expression
) -> Iterator[Expression]:
    """An expression and all that it is made of, each once, from the left.

    Args:
        expression: the expression.
        through: of what kind those are whose operands are looked at.
    """
    seen: set[int] = set()
    left = [expression]
    while left:
        part = left.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, through):
            left += reversed(part.operands)


def depends_on(expression: Any, buffers: Sequence[str]) -> bool:
    """True if an expression reads the front of one of the circular buffers."""
    return isinstance(expression, Expression) and any(
        isinstance(part, Resident) and part.buffer in buffers for part in parts_of(expression)
    )


def engine_part(expression: Expression) -> Expression | None:
    """Part of an expression that the matrix engine computes in its loop.

    It is the first matmul that only elementwise functions use, or the expression itself if it is a
    reduction, whose result the packer makes.
    """
    return expression if isinstance(expression, Reduction) else _first_product(expression)


def _first_product(expression: Expression) -> Expression | None:
    parts = parts_of(expression, through=Apply)
    return next((part for part in parts if isinstance(part, Product)), None)


def is_flat(expression: Expression) -> bool:
    """True if tiles of all operands have the same number as the tile of the result."""
    return all(map(_keeps_order, parts_of(expression)))


def _keeps_order(part: Expression) -> bool:
    """True if a tile has the number of those that it is computed from."""
    if isinstance(part, Broadcast):
        return not part.kind and part.shape == part.of.shape
    return not isinstance(part, Picked | Transposed | Product | Reduction)
