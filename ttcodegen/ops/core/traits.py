"""Traits: facts about an op that passes and other readers of the catalogue ask for."""

from __future__ import annotations

from enum import Enum, Flag, auto


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
    COLLECTIVE = auto()
    """The op exchanges elements between the chips of a mesh; a single chip keeps what it has."""
    PLACES = auto()
    """The op sets the placement and data type of a tensor, not its elements."""
    USES_HOST = auto()
    """The call makes its elements on the host, or reads an operand there, although its tensors are
    on the device."""


COMPARISON = Trait.COMPARES | Trait.TRUTH
