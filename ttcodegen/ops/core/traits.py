"""Traits and rules of ops: kinds, operation counts, collective movement and mesh size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, Flag, auto
from math import prod
from typing import Any

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import MeshShape

# Traits: facts about an op that passes and other readers of the catalogue ask for.


class CallKind(Enum):
    """Kind of a library call, as the cost models distinguish them."""

    ELEMENTWISE = auto()
    """It computes each element from those in its place. What is no other kind counts as such."""
    PRODUCT = auto()
    NORMALIZATION = auto()
    """It brings rows to a scale of their own; softmax does."""
    REDUCTION = auto()
    COPY = auto()
    """It puts elements somewhere else, in tiles or rows as they are."""
    INTERPOLATION = auto()
    SCAN = auto()
    """It sums up along a dimension and keeps every sum on the way."""
    LAYOUT = auto()
    """It makes tiles of rows, or rows of tiles."""
    RESHAPE = auto()
    PERMUTATION = auto()
    SLICE = auto()
    """It slices tensors, or concatenates them."""
    GATHER = auto()
    CACHE_WRITE = auto()
    CONVOLUTION = auto()
    POOLING = auto()
    ATTENTION = auto()
    ATTENTION_OF_ONE = auto()
    """Of one query of each user, as in decoding."""
    COLLECTIVE = auto()
    """It moves elements from chip to chip, and may add them up."""


class Trait(Flag):
    """Trait of an op; an op may have several."""

    NONE = 0
    COMPARES = auto()
    """The op compares its operands."""
    TRUTH = auto()
    """All elements of the result are 0 or 1."""
    KEEPS_TRUTH = auto()
    """Of elements that are 0 or 1 the op makes such."""
    SELF_INVERSE = auto()
    """Applied twice, the op gives its operand."""
    IDEMPOTENT = auto()
    """Applied twice, the op gives what it gives once."""
    SUMS = auto()
    """An element of the result is a sum of elements of the operand."""
    REDUCES = auto()
    """An element of the result comes from all elements along the dimensions `dim_arg`."""
    EXACT_ON_INTEGERS = auto()
    """The device computes the op exactly on integers of 32 bits."""
    OUTGROWS = auto()
    """The result may be beyond the integers that the op is given."""
    WRAPS = auto()
    """The lowest bits of integers of the result depend on the lowest bits of operands alone."""
    SELECTS = auto()
    """Each element of the first result is one of an operand, or a bound."""
    INDEX_ARITHMETIC = auto()
    """Frontends compute one index from another with the op: wrapping of negative ones, offsets."""
    NARROW_DESTINATION = auto()
    """The library computes the op with destination registers of 16 bits only."""
    ON_MATRIX_ENGINE = auto()
    """The library computes the op on the matrix engine, unless it is one of float32."""
    MATRIX_PRODUCT = auto()
    """The op multiplies matrices, and can transpose them."""
    ORDERS = auto()
    """The op puts the elements of rows in order, or returns the indices of the first of them."""
    ACTIVATES = auto()
    """The op is an activation function."""
    ALTERS = auto()
    """The result is the operand, cut off, negated or partly dropped."""
    ADJUSTS = auto()
    """The result is one operand, adjusted, where the other one is a weight or smaller."""
    TAKES_PART = auto()
    """The result is a part of the operand, from `begins` to `ends`."""
    READS_BITS = auto()
    """The op reads the bits of elements, which depend on their data type."""
    ATTENDS = auto()
    """The op is an attention: of queries, keys, values and a mask, in this order."""
    OF_LAYER = auto()
    """The op has weights, and its result is called after the layer that they belong to."""
    PREPARES_WEIGHTS = auto()
    """The op prepares a weight for another call, whose configuration it has."""
    COLLECTIVE = auto()
    """The op exchanges elements between the chips of a mesh; a single chip keeps what it has."""
    PLACES = auto()
    """The op sets the placement and data type of a tensor, not its elements."""
    OWN_NAN = auto()
    """NaN or infinities have another result than in frameworks (docs/numbers.md)."""
    OWN_NAN_IN_TILES = auto()
    """They have in device programs, where NaN spreads over a tile or is lost in a maximum."""
    SKIPS_HIDDEN = auto()
    """Kernels skip chunks of hidden keys; NaN in the other chunks reaches the result."""
    USES_HOST = auto()
    """The call makes its elements on the host, or reads an operand there, although its tensors are
    on the device."""


COMPARISON = Trait.COMPARES | Trait.TRUTH


# Operation counts of ops, as rules that definitions name.

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


# Data movement of collectives: scatter and gather of shards along a mesh axis.


@dataclass(frozen=True)
class ChipMovement:
    """A tensor that chips along an axis divide, put together, or both: the dimensions."""

    axis: int
    divided: int | None = None
    joined: int | None = None
    pairs: tuple[tuple[int, int], ...] | None = None
    """Chips that send all they have, each with one that receives it; others receive zeros. None if
    each gives to all along the axis."""


ChipMovementRule = Callable[[CatalogueOp], ChipMovement | None]
"""Movement of an op along one mesh axis; None for a form that also computes."""


# Mesh size that a collective requires by its own attributes.
#
# A module that names no mesh gets one of that size.


@dataclass(frozen=True)
class NeededChips:
    """Chips along each axis of the mesh, and in all: more than the axes have between them where an
    op does not say along which axis it needs them."""

    along: MeshShape = (1, 1)
    total: int = 1
    whole_mesh: bool = False
    """The op names all chips of the mesh along both axes, so that no other op has to be asked."""


NeededChipsRule = Callable[[Operation], NeededChips]
"""Of an op of TTIR, or one of TTNN with the same name, operands and attributes, which need not be
registered: a mesh is found before other spellings of ops are."""


def integer_of(op: Operation, name: str) -> int | None:
    """An integer attribute of an op that need not be registered; None if it has none."""
    value = op.properties.get(name, op.attributes.get(name))
    return value.value.data if isinstance(value, IntegerAttr) else None


def on_axis(axis: int | None, count: int) -> MeshShape:
    """The smallest mesh with so many chips along an axis; one chip if the axis is not known."""
    return (count, 1) if axis == 0 else (1, count) if axis == 1 else (1, 1)
