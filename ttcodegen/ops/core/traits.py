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

# Traits: properties of ops that passes and other users of the catalogue query.


class CallKind(Enum):
    """Kind of a library call, as the cost models distinguish them."""

    ELEMENTWISE = auto()
    """Computes each element from those at the same index. Default of all ops."""
    PRODUCT = auto()
    NORMALIZATION = auto()
    """Normalizes rows: layer norm, RMS norm, softmax."""
    REDUCTION = auto()
    COPY = auto()
    """Copies elements without changing the page layout."""
    INTERPOLATION = auto()
    SCAN = auto()
    """Computes a prefix sum along a dimension."""
    LAYOUT = auto()
    """Tilizes or untilizes."""
    RESHAPE = auto()
    PERMUTATION = auto()
    SLICE = auto()
    """Slices or concatenates tensors."""
    GATHER = auto()
    CACHE_WRITE = auto()
    CONVOLUTION = auto()
    POOLING = auto()
    ATTENTION = auto()
    ATTENTION_OF_ONE = auto()
    """Attention with one query per user, as in decode."""
    COLLECTIVE = auto()
    """Exchanges elements between devices and may reduce them."""


class Trait(Flag):
    """Property of an op; an op may have several."""

    NONE = 0
    COMPARES = auto()
    """The op compares its operands."""
    TRUTH = auto()
    """All elements of the result are 0 or 1."""
    KEEPS_TRUTH = auto()
    """Elements that are 0 or 1 give elements that are 0 or 1."""
    SELF_INVERSE = auto()
    """The op is its own inverse."""
    IDEMPOTENT = auto()
    """Applying the op twice gives the same as applying it once."""
    SUMS = auto()
    """An element of the result is a sum of elements of the operand."""
    REDUCES = auto()
    """An element of the result comes from all elements along the dimensions `dim_arg`."""
    EXACT_ON_INTEGERS = auto()
    """The device computes the op exactly on integers of 32 bits."""
    OUTGROWS = auto()
    """The result may overflow the integer type of the operand."""
    WRAPS = auto()
    """The low bits of an integer result depend only on the low bits of the operands."""
    SELECTS = auto()
    """Each element of the first result is an element of an operand, or a bound."""
    INDEX_ARITHMETIC = auto()
    """Frontends use the op in index computations: wrapping of negative ones, offsets."""
    NARROW_DESTINATION = auto()
    """The library computes the op with 16-bit destination registers only."""
    ON_MATRIX_ENGINE = auto()
    """The library computes the op on the matrix engine, unless it is float32."""
    MATRIX_PRODUCT = auto()
    """The op multiplies matrices and can transpose them."""
    ORDERS = auto()
    """The op sorts rows, or returns the indices of their first elements in order."""
    ACTIVATES = auto()
    """The op is an activation function."""
    ALTERS = auto()
    """The result is the operand, clamped, negated or partly dropped."""
    ADJUSTS = auto()
    """The result is one operand, adjusted by another that is a weight or smaller."""
    TAKES_PART = auto()
    """The result is a slice of the operand, from `begins` to `ends`."""
    READS_BITS = auto()
    """The op reads the bit representation of elements, which depends on their data type."""
    ATTENDS = auto()
    """The op is an attention with queries, keys, values and a mask, in this order."""
    OF_LAYER = auto()
    """The op has weights; its result is named after the layer that they belong to."""
    PREPARES_WEIGHTS = auto()
    """The op prepares a weight for another call and has its configuration."""
    COLLECTIVE = auto()
    """The op exchanges elements between the devices of a mesh; the identity on one device."""
    PLACES = auto()
    """The op sets the placement and data type of a tensor, not its elements."""
    OWN_NAN = auto()
    """NaN or infinities give other results than in frameworks (docs/numbers.md)."""
    OWN_NAN_IN_TILES = auto()
    """Like `OWN_NAN`, in device programs only: NaN fills a tile or is lost in a maximum."""
    MAKES_INTEGERS = auto()
    """The op rounds floats to integers, at least internally.

    Values out of the integer range give other results in kernels than in frameworks
    (docs/numbers.md).
    """
    SKIPS_HIDDEN = auto()
    """Kernels skip chunks of hidden keys; NaN in the other chunks reaches the result."""
    USES_HOST = auto()
    """The call creates its elements or reads an operand on the host, although its tensors are on
    the device.
    """


COMPARISON = Trait.COMPARES | Trait.TRUTH


# Operation counts of ops, as rules that definitions name.

Shape = tuple[int, ...]

VECTOR_CYCLES = 4
"""Default vector engine cycles of an elementwise op for 32 elements."""


@dataclass(frozen=True)
class OpShapes:
    """Shapes and attributes that an op's operation count depends on."""

    attributes: Mapping[str, Any]
    """Integer, boolean and integer list attributes; others may be missing."""
    operands: Sequence[Shape]
    results: Sequence[Shape]

    @property
    def produced(self) -> int:
        """Number of elements of all results."""
        return sum(map(prod, self.results))

    @property
    def taken(self) -> int:
        """Number of elements of the largest operand."""
        return max(map(prod, self.operands))


FlopRule = Callable[[OpShapes], int]
"""Counts multiplications and additions (or integer operations) of an op."""


def no_flops(shapes: OpShapes) -> int:
    """Operation count of an op that only moves or creates elements."""
    return 0


def per_element(steps: int) -> FlopRule:
    """Rule of `steps` operations for each element of the larger of operands and results."""

    def rule(shapes: OpShapes) -> int:
        return steps * max(shapes.taken, shapes.produced)

    return rule


one_per_element = per_element(1)


def product_flops(shapes: OpShapes) -> int:
    """Operation count of a matmul, including its bias."""
    first = (1, 1, *shapes.operands[0])
    summed = first[-2] if shapes.attributes.get("transpose_a") else first[-1]
    bias = shapes.produced if len(shapes.operands) > 2 else 0
    return 2 * shapes.produced * summed + bias


def attention_flops(shapes: OpShapes) -> int:
    """Operation count of attention: scores and their matmul with the values."""
    return 4 * prod(shapes.operands[0]) * shapes.operands[1][-2]


def window_flops(shapes: OpShapes) -> int:
    """Operation count of pooling: one operation per window element of each result."""
    return shapes.produced * prod(shapes.attributes.get("kernel_size", (1,)))


def convolution_flops(shapes: OpShapes) -> int:
    """Operation count of a convolution: a sum of products per element of the result."""
    channels = int(shapes.attributes.get("out_channels", 0)) or shapes.operands[-1][-1]
    return 2 * shapes.produced * prod(shapes.operands[1]) // max(channels, 1)


def transposed_convolution_flops(shapes: OpShapes) -> int:
    """Operation count of a transposed convolution: a product per weight of an input element."""
    channels = int(shapes.attributes.get("in_channels", 1))
    return 2 * prod(shapes.operands[0]) * prod(shapes.operands[1]) // max(channels, 1)


# Data movement of collectives: scatter and gather of shards along a mesh axis.


@dataclass(frozen=True)
class ChipMovement:
    """Data movement along a mesh axis: the dimensions that are split or concatenated."""

    axis: int
    divided: int | None = None
    joined: int | None = None
    pairs: tuple[tuple[int, int], ...] | None = None
    """(source, target) pairs of devices; devices that receive nothing get zeros.

    None if each device sends to all devices along the axis.
    """


ChipMovementRule = Callable[[CatalogueOp], ChipMovement | None]
"""Returns the data movement of an op; None for a form that also computes."""


# Mesh size that a collective requires by its own attributes.
#
# A module that names no mesh gets one of that size.


@dataclass(frozen=True)
class NeededChips:
    """Devices along each axis of the mesh, and in total.

    `total` may exceed the product of the axes where an op does not say along which axis it needs
    them.
    """

    along: MeshShape = (1, 1)
    total: int = 1
    whole_mesh: bool = False
    """True if the op names all devices along both axes, so that no other op matters."""


NeededChipsRule = Callable[[Operation], NeededChips]
"""Returns the mesh size that an op requires.

The op is a TTIR op, or a TTNN op with the same name, operands and attributes, and need not be
registered: a mesh is inferred before ops are canonicalized.
"""


def integer_of(op: Operation, name: str) -> int | None:
    """Returns an integer attribute of an op that need not be registered, None if it has none."""
    value = op.properties.get(name, op.attributes.get(name))
    return value.value.data if isinstance(value, IntegerAttr) else None


def on_axis(axis: int | None, count: int) -> MeshShape:
    """Returns the smallest mesh with `count` devices along an axis; 1x1 if it is not known."""
    return (count, 1) if axis == 0 else (1, count) if axis == 1 else (1, 1)
