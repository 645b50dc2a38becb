"""Block expressions of kernels, their operators, and the origins of blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Protocol

import numpy as np

from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.lang.simulator.context import KernelKind, Launch, current, running_kernel
from ttcodegen.lang.simulator.locations import ProgramError, error
from ttcodegen.lang.simulator.shapes import (
    Shape,
    product_shape,
    same_layouts,
    same_shapes,
    tiled_only,
)
from ttcodegen.lang.simulator.tensors import Tensor, TensorSlice


@dataclass(frozen=True, eq=False)
class RecordedValue:
    """A value that a kernel computed or read.

    Attributes:
        kind: the operator or function; "slice" for a part of a tensor.
        shape: in units.
        operands: what it was computed from.
        details: numbers and dimensions that the function was given.
    """

    kind: str
    shape: Shape
    operands: tuple[RecordedValue, ...] = ()
    details: tuple[object, ...] = ()


@dataclass(frozen=True, eq=False)
class RecordedSlice(RecordedValue):
    """A part of a tensor that was read."""

    tensor: Tensor | None = None
    starts: Shape = ()
    axes: tuple[int, ...] = ()
    """The dimension of the tensor that each dimension of the block corresponds to."""


@dataclass(frozen=True)
class RecordedWrite:
    """A part of a tensor that was written."""

    part: TensorSlice
    axes: tuple[int, ...]
    value: RecordedValue | None
    """None if it is not known how it was computed."""


@dataclass
class Recording:
    """Record of the writes of a launch and their origins."""

    writes: dict[int, list[RecordedWrite]] = field(default_factory=dict[int, list[RecordedWrite]])
    """By the identity of the tensor, in order."""
    _contents: dict[int, tuple[np.ndarray, RecordedValue | None]] = field(
        default_factory=dict[int, tuple[np.ndarray, "RecordedValue | None"]]
    )
    """The contents of the memory of blocks, by the identity of the memory, which is kept."""

    reads_elements: bool = False
    """True if kernels read single elements: what they do may depend on what tensors hold."""

    def content(self, memory: np.ndarray) -> RecordedValue | None:
        """The contents of the memory of a block."""
        return self._contents.get(id(memory), (memory, None))[1]

    def stored(self, memory: np.ndarray, value: RecordedValue | None) -> None:
        """Something was stored into the memory of a block."""
        self._contents[id(memory)] = memory, value

    def loaded(self, memory: np.ndarray, part: TensorSlice, shape: Shape) -> None:
        """A part of a tensor was copied into the memory of a block."""
        axes = part.axes_of(shape)
        value = RecordedSlice("slice", shape, (), (), part.tensor, part.starts, axes)
        self.stored(memory, value)

    def saved(self, memory: np.ndarray, part: TensorSlice, shape: Shape) -> None:
        """The memory of a block was copied to a part of a tensor."""
        write = RecordedWrite(part, part.axes_of(shape), self.content(memory))
        self.writes.setdefault(id(part.tensor), []).append(write)


def record(launch: Launch) -> None:
    """Has the simulator record a launch, from now on."""
    launch.is_recorded = True
    launch.made.of(Recording).append(Recording())


def recording_of(launch: Launch) -> Recording | None:
    """Recording of a launch, or None if it is not recorded."""
    return launch.made.of(Recording)[0] if launch.is_recorded else None


def current_recording() -> Recording | None:
    """Recording of the running launch, or None."""
    node = current.node
    return recording_of(node.launch) if node is not None and node.launch.is_recorded else None


class HasOrigin(Protocol):
    """A block expression."""

    @property
    def origin(self) -> RecordedValue | None:
        """Recorded origin of the value, if known."""
        ...


def computed(
    kind: str, shape: Shape, operands: Sequence[HasOrigin], details: Sequence[object] = ()
) -> RecordedValue | None:
    """A computed value; None if nothing is recorded, or if it is not known what an operand is."""
    if current_recording() is None:
        return None
    origins = [each.origin for each in operands]
    known = [each for each in origins if each is not None]
    if len(known) != len(operands):
        return None
    return RecordedValue(kind, shape, tuple(known), tuple(details))


# Recording of the origins of blocks during simulation.


Array = np.ndarray
ALL = slice(None)
_COMPUTE = KernelKind.COMPUTE


class BlockExpr:
    """The value of a block expression.

    Attributes:
        shape: in tiles for tiled expressions (the last two dimensions), else in elements.
        is_tiled: which of both.
        is_number: whether it is one number, which is an integer beside integers.
    """

    __slots__ = ("_array", "_origin", "is_number", "is_tiled", "shape")

    def __init__(
        self,
        array: Array,
        shape: Shape,
        is_tiled: bool,
        origin: RecordedValue | None = None,
        *,
        is_number: bool = False,
    ) -> None:
        self._array = array
        self.shape = shape
        self.is_tiled = is_tiled
        self.is_number = is_number
        self._origin = origin

    @property
    def origin(self) -> RecordedValue | None:
        """Recorded origin of the block, if there is one."""
        return self._origin

    def value(self) -> Array:
        """The elements, float32 or integers; reading a block is an event in its life."""
        return self._array

    def __add__(self, other: BlockExpr) -> BlockExpr:
        return elementwise("+", np.add, self, other)

    def __sub__(self, other: BlockExpr) -> BlockExpr:
        return elementwise("-", np.subtract, self, other)

    def __mul__(self, other: BlockExpr) -> BlockExpr:
        return elementwise("*", np.multiply, self, other)

    def __truediv__(self, other: BlockExpr) -> BlockExpr:
        return elementwise("/", np.divide, self, other)

    def __mod__(self, other: BlockExpr) -> BlockExpr:
        return elementwise("%", np.mod, self, other)

    def __floordiv__(self, other: BlockExpr) -> BlockExpr:
        return elementwise("//", np.floor_divide, self, other)

    def __xor__(self, other: BlockExpr) -> BlockExpr:
        return elementwise("^", _exclusive_or, self, other)

    def __matmul__(self, other: BlockExpr) -> BlockExpr:
        return matmul(self, other)

    def __iadd__(self, other: BlockExpr) -> BlockExpr:  # noqa: PYI034
        return elementwise("+=", np.add, self, other)

    def __neg__(self) -> BlockExpr:
        return mapped("-", np.negative, self)

    def __abs__(self) -> BlockExpr:
        return mapped("abs", np.abs, self)

    def __pow__(self, exponent: int) -> BlockExpr:
        return power(self, exponent)

    def __radd__(self, other: object) -> BlockExpr:
        raise no_operand("+", other)

    __rsub__ = __rmul__ = __rtruediv__ = __rmatmul__ = __radd__

    def __bool__(self) -> bool:
        raise no_condition()

    def __lt__(self, other: object) -> bool:
        raise no_comparison()

    __le__ = __gt__ = __ge__ = __lt__

    def __getitem__(self, index: object) -> BlockExpr:
        raise no_element()


def no_comparison() -> ProgramError:
    """The error of a program that compares block expressions."""
    return error(
        "block expressions have no comparisons",
        remedy="ttl.math.sign of a difference says which is greater, element by element",
    )


def no_element() -> ProgramError:
    """The error of a program that takes a part of a block expression."""
    return error(
        "a block expression has no elements that kernels could name",
        remedy="let data movement kernels copy a slice of the tensor into a block of its own",
    )


def no_condition() -> ProgramError:
    """The error of a program that asks whether a block expression is true."""
    return error(
        "a block expression is no condition: kernels cannot branch on its elements",
        remedy="choose element by element with ttl.block.where",
    )


def _exclusive_or(left: Array, right: Array) -> Array:
    for array in (left, right):
        if array.dtype.kind == "f":
            raise error("the operands of ^ are blocks of integers, not of floats")
    return np.bitwise_xor(left, right)


def element_shape(shape: Shape, is_tiled: bool) -> Shape:
    """The elements that a shape in tiles, or in elements, holds."""
    if not is_tiled:
        return shape
    return (*shape[:-2], shape[-2] * TILE_SIDE, shape[-1] * TILE_SIDE)


def no_operand(what: str, value: object) -> ProgramError:
    """The error of a program that gives something else than a block expression."""
    remedy = None
    if isinstance(value, int | float):
        remedy = "ttl.block.fill makes a block expression of a number"
    return error(
        f"an operand of {what} is a {type(value).__name__}, not a block expression", remedy=remedy
    )


def operand(what: str, value: object) -> BlockExpr:
    """Raises ProgramError unless a value is a block expression in a compute kernel."""
    kernel = current.kernel
    if kernel is None or kernel.kind is not _COMPUTE:
        running_kernel(f"{what} of block expressions", KernelKind.COMPUTE)
    if not isinstance(value, BlockExpr):
        raise no_operand(what, value)
    return value


def mapped(
    what: str, function: Callable[[Array], Array], value: object, numbers: Sequence[float] = ()
) -> BlockExpr:
    """A function of each element; `numbers` are those that it was given besides."""
    given = operand(what, value)
    origin = computed(what, given.shape, [given], numbers)
    array = given.value()
    found = function(array)
    if array.dtype.kind in "iu" and found.dtype.kind in "biu":
        found = found.astype(array.dtype)
    return BlockExpr(_computed(found), given.shape, given.is_tiled, origin)


def _computed(array: Array) -> Array:
    """The device computes in float32, or integers."""
    if array.dtype == np.float32 or array.dtype.kind not in "fb":
        return array
    return array.astype(np.float32)


def elementwise(
    what: str, function: Callable[..., Array], *values: object, typed: slice = ALL
) -> BlockExpr:
    """A function of the elements of several expressions of the same shape.

    Args:
        what: its name.
        function: of the arrays.
        values: the expressions.
        typed: which of them have the same data type: floats, or integers of one kind, beside which
            a number is an integer.
    """
    if len(values) == 2 and typed is ALL:
        return _of_two(what, function, operand(what, values[0]), operand(what, values[1]))
    given = [operand(what, value) for value in values]
    same_layouts(what, [each.is_tiled for each in given])
    same_shapes(what, [each.shape for each in given])
    origin = computed(what, given[0].shape, given)
    arrays = [each.value() for each in given]
    arrays[typed] = _of_one_type(what, given[typed], arrays[typed])
    array = function(*arrays)
    return BlockExpr(_computed(array), given[0].shape, given[0].is_tiled, origin)


def _of_two(
    what: str, function: Callable[..., Array], left: BlockExpr, right: BlockExpr
) -> BlockExpr:
    """The same for two expressions, which most functions have, without lists of them."""
    if left.is_tiled is not right.is_tiled:
        same_layouts(what, [left.is_tiled, right.is_tiled])
    if left.shape != right.shape:
        same_shapes(what, [left.shape, right.shape])
    origin = computed(what, left.shape, [left, right])
    a, b = left.value(), right.value()
    if a.dtype != b.dtype:
        a, b = _of_one_type(what, [left, right], [a, b])
    return BlockExpr(_computed(function(a, b)), left.shape, left.is_tiled, origin)


def _of_one_type(what: str, given: Sequence[BlockExpr], arrays: Sequence[Array]) -> Sequence[Array]:
    found = {array.dtype for each, array in zip(given, arrays, strict=True) if not each.is_number}
    if len(found) > 1:
        raise error(f"the operands of {what} have different data types")
    return [array.astype(kind, copy=False) for kind in found for array in arrays] or arrays


def power(value: object, exponent: object) -> BlockExpr:
    """A power with an exponent that is a natural number."""
    if not isinstance(exponent, int) or exponent < 0:
        raise error(f"the exponent of a power is an unsigned integer, not {exponent!r}")
    return mapped("**", lambda x: x**exponent, value, [exponent])


def matmul(left: object, right: object) -> BlockExpr:
    """The product of two blocks, [..., M, K] and [..., K, N]."""
    a, b = operand("@", left), operand("@", right)
    tiled_only("@", a.is_tiled and b.is_tiled)
    shape = product_shape(a.shape, b.shape)
    origin = computed("@", shape, [a, b])
    return BlockExpr(np.matmul(a.value(), b.value()), shape, True, origin)


def elements(value: BlockExpr) -> int:
    """Element count of an expression."""
    return prod(element_shape(value.shape, value.is_tiled))
