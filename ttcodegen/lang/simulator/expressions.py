"""Block expressions of kernels, and their operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.lang.simulator.context import KernelKind, current, running_kernel
from ttcodegen.lang.simulator.locations import ProgramError, error
from ttcodegen.lang.simulator.recording import RecordedValue, computed
from ttcodegen.lang.simulator.shapes import (
    Shape,
    product_shape,
    same_layouts,
    same_shapes,
    tiled_only,
)

Array = np.ndarray
ALL = slice(None)
_COMPUTE = KernelKind.COMPUTE


class NotNumeric:
    """A value that functions of Python and of numpy do not take as a number or an array."""

    __slots__ = ()

    def __float__(self) -> float:
        raise _no_number()

    def __array__(self, *_arguments: object, **_options: object) -> Array:
        raise _no_number()

    def __array_ufunc__(self, *_arguments: object, **_options: object) -> Array:
        raise _no_number()


class BlockExpr(NotNumeric):
    """The value of a block expression.

    Attributes:
        shape: in tiles for tiled expressions (the last two dimensions), else in elements.
        is_tiled: True for tiled, False for row-major expressions.
        is_number: True for a fill, which takes the integer type of other operands.
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
        """Recorded origin of the value, if known."""
        return self._origin

    def value(self) -> Array:
        """Elements, as float32 or integers; reading a block is an event of its lifetime."""
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
        return unary("-", np.negative, self)

    def __abs__(self) -> BlockExpr:
        return unary("abs", np.abs, self)

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
    """Error for comparing block expressions by an operator."""
    return error(
        "block expressions have no comparisons",
        remedy="ttl.math.sign of a difference says which is greater, element by element",
    )


def no_element() -> ProgramError:
    """Error for indexing a block expression."""
    return error(
        "a block expression has no elements that kernels could name",
        remedy="let data movement kernels copy a slice of the tensor into a block of its own",
    )


def _no_number() -> ProgramError:
    """Error for passing a block expression to a function of Python or numpy."""
    return error(
        "a block expression is no number: functions of Python and numpy do not take it",
        remedy="in kernels, operators and functions of ttl.math compute with blocks",
    )


def no_condition() -> ProgramError:
    """Error for using a block expression as a condition."""
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
    """Converts a shape in tiles, or in elements, to elements."""
    if not is_tiled:
        return shape
    return (*shape[:-2], shape[-2] * TILE_SIDE, shape[-1] * TILE_SIDE)


def no_operand(what: str, value: object) -> ProgramError:
    """Error for an operand that is not a block expression."""
    remedy = None
    if isinstance(value, int | float):
        remedy = "ttl.block.fill makes a block expression of a number"
    return error(
        f"an operand of {what} is a {type(value).__name__}, not a block expression", remedy=remedy
    )


def operand(what: str, value: object) -> BlockExpr:
    """Returns a value if it is a block expression in a compute kernel; else raises ProgramError."""
    kernel = current.kernel
    if kernel is None or kernel.kind is not _COMPUTE:
        running_kernel(f"{what} of block expressions", KernelKind.COMPUTE)
    if not isinstance(value, BlockExpr):
        raise no_operand(what, value)
    return value


def unary(
    what: str, function: Callable[[Array], Array], value: object, numbers: Sequence[float] = ()
) -> BlockExpr:
    """Applies an elementwise function of one operand; `numbers` are its further arguments."""
    given = operand(what, value)
    origin = computed(what, given.shape, [given], numbers)
    array = given.value()
    found = function(array)
    if array.dtype.kind in "iu" and found.dtype.kind in "biu":
        found = found.astype(array.dtype)
    return BlockExpr(_in_compute_dtype(found), given.shape, given.is_tiled, origin)


def _in_compute_dtype(array: Array) -> Array:
    """Converts results to float32, in which the device computes, or keeps integers."""
    if array.dtype == np.float32 or array.dtype.kind not in "fb":
        return array
    return array.astype(np.float32)


def elementwise(
    what: str, function: Callable[..., Array], *values: object, typed: slice = ALL
) -> BlockExpr:
    """Applies an elementwise function to expressions of the same shape.

    Args:
        what: name of the function, for messages.
        function: the function, on arrays.
        values: the expressions.
        typed: operands that must have the same data type; fills are converted to it.
    """
    if len(values) == 2 and typed is ALL:
        return _elementwise_binary(
            what, function, operand(what, values[0]), operand(what, values[1])
        )
    given = [operand(what, value) for value in values]
    same_layouts(what, [each.is_tiled for each in given])
    same_shapes(what, [each.shape for each in given])
    origin = computed(what, given[0].shape, given)
    arrays = [each.value() for each in given]
    arrays[typed] = _unified_types(what, given[typed], arrays[typed])
    array = function(*arrays)
    return BlockExpr(_in_compute_dtype(array), given[0].shape, given[0].is_tiled, origin)


def _elementwise_binary(
    what: str, function: Callable[..., Array], left: BlockExpr, right: BlockExpr
) -> BlockExpr:
    """Fast path of `elementwise` for two operands, without lists."""
    if left.is_tiled is not right.is_tiled:
        same_layouts(what, [left.is_tiled, right.is_tiled])
    if left.shape != right.shape:
        same_shapes(what, [left.shape, right.shape])
    origin = computed(what, left.shape, [left, right])
    a, b = left.value(), right.value()
    if a.dtype != b.dtype:
        a, b = _unified_types(what, [left, right], [a, b])
    return BlockExpr(_in_compute_dtype(function(a, b)), left.shape, left.is_tiled, origin)


def _unified_types(
    what: str, given: Sequence[BlockExpr], arrays: Sequence[Array]
) -> Sequence[Array]:
    found = {array.dtype for each, array in zip(given, arrays, strict=True) if not each.is_number}
    if len(found) > 1:
        raise error(f"the operands of {what} have different data types")
    return [array.astype(kind, copy=False) for kind in found for array in arrays] or arrays


def power(value: object, exponent: object) -> BlockExpr:
    """Power with an exponent of 0 or more."""
    if not isinstance(exponent, int) or exponent < 0:
        raise error(f"the exponent of a power is an unsigned integer, not {exponent!r}")
    return unary("**", lambda x: x**exponent, value, [exponent])


def matmul(left: object, right: object) -> BlockExpr:
    """Matmul of two blocks, [..., M, K] and [..., K, N]."""
    a, b = operand("@", left), operand("@", right)
    tiled_only("@", a.is_tiled and b.is_tiled)
    shape = product_shape(a.shape, b.shape)
    origin = computed("@", shape, [a, b])
    return BlockExpr(np.matmul(a.value(), b.value()), shape, True, origin)


def elements(value: BlockExpr) -> int:
    """Number of elements of an expression."""
    return prod(element_shape(value.shape, value.is_tiled))
