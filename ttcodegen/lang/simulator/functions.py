"""Tables of `ttl.math` and of functions of whole blocks, debug printing and signposts.

An entry has the name of a function, its section in Appendix B of the TT-Lang specification (0.22),
its numpy implementation, and the names of its numeric parameters. `ttl.math`, the simulator, the
compiler and the table of the documentation are derived from it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from types import TracebackType
from typing import Any

import numpy as np

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.lang.simulator import shapes
from ttcodegen.lang.simulator.buffer_making import check_tile
from ttcodegen.lang.simulator.buffers import Block, DataflowBuffer
from ttcodegen.lang.simulator.context import KernelKind, running_kernel
from ttcodegen.lang.simulator.expressions import (
    Array,
    BlockExpr,
    element_shape,
    elementwise,
    operand,
)
from ttcodegen.lang.simulator.locations import ProgramError, error, is_dropped
from ttcodegen.lang.simulator.recording import computed
from ttcodegen.lang.simulator.shapes import (
    Shape,
    broadcast_axes,
    checked_shape,
    squeezed,
    tiled_only,
    transposed_shape,
    unsqueezed,
)
from ttcodegen.lang.simulator.tensors import ROW_MAJOR_LAYOUT, TILE_LAYOUT, Tensor
from ttcodegen.numerics.rounding import rounded_for_device
from ttcodegen.ops.elementwise.unary import gelu, sigmoid

EXPR = slice(1)
"""Selects the first operand."""


def no_shape(what: str) -> ProgramError:
    """Error for a function of blocks that is called without the shape of its result."""
    return error(f"{what} needs the shape of its result")


def _target_shape(what: str, target: BlockExpr | None, shape: object) -> Shape:
    """Shape of a result, which older programs pass as the target block."""
    if target is not None and not isinstance(target, BlockExpr):  # pyright: ignore
        raise error(f"the target of {what} is a block, not a {type(target).__name__}")
    if (target is None) == (shape is None):
        raise no_shape(what)
    return target.shape if target is not None else checked_shape(what, shape)


def _tiled_operand(what: str, expr: BlockExpr) -> BlockExpr:
    given = operand(what, expr)
    tiled_only(what, given.is_tiled)
    return given


def broadcast(
    expr: BlockExpr,
    target: BlockExpr | None = None,
    dims: Sequence[int] = (),
    shape: int | Shape | None = None,
) -> BlockExpr:
    """Broadcasts a block along dimensions of size 1.

    Along the last two dimensions, the first row, column or element of each tile is repeated.
    """
    what = "ttl.block.broadcast"
    given = _tiled_operand(what, expr)
    sizes = _target_shape(what, target, shape)
    axes = broadcast_axes(what, given.shape, sizes, dims)
    array = given.value()
    first = tuple(slice(1) if axis in axes else slice(None) for axis in range(len(sizes)))
    repeated = np.broadcast_to(array[first], element_shape(sizes, True)).copy()
    return BlockExpr(repeated, sizes, True, computed("broadcast", sizes, [given], axes))


def _reduce(
    name: str, function: Callable[..., Array], expr: BlockExpr, dims: Sequence[int], shape: object
) -> BlockExpr:
    what = f"ttl.math.{name}"
    given = _tiled_operand(what, expr)
    sizes, axes = shapes.reduced(what, given.shape, dims, shape)
    elements = given.value()
    # numpy sums integers in 64 bits.
    reduced = function(elements, axis=axes, keepdims=True).astype(elements.dtype, copy=False)
    # The result is in the first row, column or element of the tiles.
    array = np.zeros(element_shape(sizes, True), reduced.dtype)
    array[tuple(slice(size) for size in reduced.shape)] = reduced
    return BlockExpr(array, sizes, True, computed(name, sizes, [given], axes))


def reduce_sum(expr: BlockExpr, dims: Sequence[int], shape: int | Shape) -> BlockExpr:
    """Sum over dimensions, which have size 1 in `shape`."""
    return _reduce("reduce_sum", np.sum, expr, dims, shape)


def reduce_max(expr: BlockExpr, dims: Sequence[int], shape: int | Shape) -> BlockExpr:
    """Maximum over dimensions, which have size 1 in `shape`."""
    return _reduce("reduce_max", np.max, expr, dims, shape)


def transpose(expr: BlockExpr) -> BlockExpr:
    """Transposes a block of two dimensions."""
    given = _tiled_operand("ttl.block.transpose", expr)
    shape = transposed_shape(given.shape)
    origin = computed("transpose", shape, [given])
    return BlockExpr(given.value().T.copy(), shape, True, origin)


def filled_layout(shape: Shape, buffers: Sequence[DataflowBuffer]) -> bool:
    """True if a fill without a layout is tiled.

    The specification leaves the layout open. It follows the node's buffers of the same shape, else
    all
    of its buffers; if these differ, it is tiled if the shape has two dimensions or more.
    """
    found = {each.is_tiled for each in buffers if each.shape == shape}
    found = found or {each.is_tiled for each in buffers}
    return found.pop() if len(found) == 1 else len(shape) >= 2


def filled_like(expr: BlockExpr, number: float) -> BlockExpr:
    """Fills a block in the shape and layout of another one."""
    return _fill(number, expr.shape, expr.is_tiled)


def _fill(value: float, shape: Shape, is_tiled: bool) -> BlockExpr:
    array = np.full(element_shape(shape, is_tiled), value, np.float32)
    origin = computed("fill", shape, [], [float(value)])
    return BlockExpr(array, shape, is_tiled, origin, is_number=True)


def checked_layout(layout: object, dtype: object, tile: object) -> bool | None:
    """Validates the optional arguments of a fill; True for a tiled layout, None if not given.

    Raises:
        ProgramError: if the layout, data type or tile is not supported.
    """
    what = "ttl.block.fill"
    if layout not in (None, TILE_LAYOUT, ROW_MAJOR_LAYOUT):
        raise error(f"the layout of {what} is ttnn.TILE_LAYOUT or ROW_MAJOR_LAYOUT, not {layout!r}")
    if dtype is not None and not isinstance(dtype, DataType):
        raise error(f"the dtype of {what} is a data type, such as ttnn.bfloat16, not {dtype!r}")
    if tile is not None:
        check_tile(what, tile)
    return None if layout is None else layout == TILE_LAYOUT


def fill(
    *arguments: object,
    value: object = None,
    shape: int | Shape | None = None,
    layout: str | None = None,
    dtype: DataType | None = None,
    tile: tuple[int, int] | None = None,
) -> BlockExpr:
    """Fills a block with a number, as in `fill(0, shape=(1, 2))`.

    Older programs pass the target block before the value. The number is rounded to `dtype` if
    given.
    """
    what = "ttl.block.fill"
    running_kernel(what, KernelKind.COMPUTE)
    rest = list(arguments)
    target: BlockExpr | None = None
    if rest and isinstance(rest[0], BlockExpr):
        target, rest = rest[0], rest[1:]
    value = rest.pop(0) if value is None and rest else value
    given = rest.pop(0) if shape is None and rest else shape
    if rest or not isinstance(value, int | float):
        raise error(f"{what} takes a number and a shape")
    sizes = _target_shape(what, target, given)
    buffers = running_kernel(what).node.made.of(DataflowBuffer)
    is_tiled = target.is_tiled if target is not None else checked_layout(layout, dtype, tile)
    if is_tiled is None:
        is_tiled = filled_layout(sizes, buffers)
    return _fill(rounded_number(value, dtype), sizes, is_tiled)


def rounded_number(value: float, dtype: DataType | None) -> float:
    """Rounds a number to a data type, if given."""
    if dtype is None:
        return value
    return float(rounded_for_device(np.array([value]), dtype)[0])


def _masked(number: float, x: Array, mask: Array) -> Array:
    if np.isinf(number) and x.dtype.kind != "f":
        raise no_infinity()
    return np.where(mask == 1, x.dtype.type(number), x)


def no_infinity() -> ProgramError:
    """Error for masking integers with infinity."""
    return error("ttl.block.mask_posinf takes blocks of floats: integers have no infinity")


def _select(condition: Array, true: Array, false: Array) -> Array:
    return np.where(condition != 0, true, false)


def mask(expr: BlockExpr, mask: BlockExpr) -> BlockExpr:
    """Replaces elements by 0 where the mask is 1."""
    return elementwise("ttl.block.mask", partial(_masked, 0.0), expr, mask, typed=EXPR)


def mask_posinf(expr: BlockExpr, mask: BlockExpr) -> BlockExpr:
    """Replaces elements by positive infinity where the mask is 1."""
    what = "ttl.block.mask_posinf"
    return elementwise(what, partial(_masked, np.inf), expr, mask, typed=EXPR)


def where(condition: BlockExpr, true_value: BlockExpr, false_value: BlockExpr) -> BlockExpr:
    """Selects elements of `true_value` where the condition is 1, else of `false_value`."""
    return elementwise(
        "ttl.block.where",
        _select,
        condition,
        true_value,
        false_value,
        typed=slice(1, None),
    )


def _reshaped(given: BlockExpr, shape: Shape, kept: Shape) -> BlockExpr:
    """Adds or removes dimensions of size 1.

    `kept` are the dimensions of the longer shape that the shorter one keeps.
    """
    origin = computed("reshape", shape, [given], kept)
    if not given.is_tiled:
        return BlockExpr(given.value().reshape(shape).copy(), shape, False, origin)
    grid = (*given.shape[:-2], given.shape[-2], TILE_SIDE, given.shape[-1], TILE_SIDE)
    tiles = np.moveaxis(given.value().reshape(grid), -3, -2)
    permuted = np.moveaxis(tiles.reshape(*shape, TILE_SIDE, TILE_SIDE), -2, -3)
    return BlockExpr(permuted.reshape(element_shape(shape, True)).copy(), shape, True, origin)


def squeeze(expr: BlockExpr, dims: int | Sequence[int]) -> BlockExpr:
    """Removes dimensions of size 1."""
    given = operand("ttl.block.squeeze", expr)
    shape, kept = squeezed(given.shape, dims, is_tiled=given.is_tiled)
    return _reshaped(given, shape, kept)


def unsqueeze(expr: BlockExpr, dims: int | Sequence[int]) -> BlockExpr:
    """Inserts dimensions of size 1 at positions in the new shape."""
    given = operand("ttl.block.unsqueeze", expr)
    shape, kept = unsqueezed(given.shape, dims)
    return _reshaped(given, shape, kept)


@dataclass(frozen=True)
class MathFunction:
    """A function of a block expression and of numbers."""

    name: str
    section: str
    meaning: Callable[..., Array]
    """Implementation on float32 arrays and the numbers."""
    numbers: tuple[str, ...] = ()
    """Names of the numeric parameters, in order."""
    flags: tuple[str, ...] = ()
    """Names of keyword options that select how the device computes the function."""


_BASIC = "Basic unary math functions"
_TRIGONOMETRIC = "Trigonometric unary math functions"
_ACTIVATION = "Activation functions"
_ROUNDING = "Rounding functions"


def _exp(x: Array) -> Array:
    return np.exp(x)


def _softplus(x: Array, beta: float, beta_reciprocal: float, threshold: float) -> Array:
    scaled = x * beta
    return np.where(scaled > threshold, x, np.logaddexp(scaled, np.float32(0)) * beta_reciprocal)


def _relu_min(x: Array, lower: float) -> Array:
    return np.maximum(np.maximum(x, lower), 0)


def _leaky_relu(x: Array, slope: float) -> Array:
    return np.where(x > 0, x, x * slope)


def _elu(x: Array, slope: float) -> Array:
    return np.where(x > 0, x, slope * np.expm1(x))


def _celu(x: Array, alpha: float, alpha_recip: float) -> Array:
    return np.where(x > 0, x, alpha * np.expm1(x * alpha_recip))


def _selu(x: Array, scale: float, alpha: float) -> Array:
    return scale * _elu(x, alpha)


def _threshold(x: Array, threshold: float, value: float) -> Array:
    """Replaces what exceeds the threshold, as specified; PyTorch's threshold does the opposite."""
    return np.where(x > threshold, value, x)


def _clip(x: Array, lower: float, upper: float) -> Array:
    return np.clip(x, lower, upper)


def _relu_max(x: Array, upper: float) -> Array:
    return np.clip(x, 0, upper)


def _rsub(x: Array, b: float) -> Array:
    return b - x


def _round(x: Array, decimals: float) -> Array:
    return np.round(x, int(decimals))


def _plain(name: str, section: str, meaning: Callable[[Array], Array]) -> MathFunction:
    """Table entry of a function without numeric parameters."""
    return MathFunction(name, section, meaning)


_F = MathFunction


@dataclass(frozen=True)
class ExponentialFlags:
    """Options of `ttl.math.exp`; only the scale changes the result."""

    approx: bool = False
    scale: float | None = None
    skip_clamp_check: bool = False
    iterations: int = 8
    """Iterations of the vector engine: 8 compute a whole tile."""


MATH_FUNCTIONS: dict[str, MathFunction] = {
    function.name: function
    for function in (
        _plain("abs", _BASIC, lambda x: np.abs(x)),
        _plain("neg", _BASIC, lambda x: np.negative(x)),
        _F("exp", _BASIC, _exp, flags=tuple(each.name for each in fields(ExponentialFlags))),
        _plain("exp2", _BASIC, lambda x: np.exp2(x)),
        _plain("expm1", _BASIC, lambda x: np.expm1(x)),
        _plain("log", _BASIC, lambda x: np.log(x)),
        _plain("logp1", _BASIC, lambda x: np.log1p(x)),
        _plain("sqrt", _BASIC, lambda x: np.sqrt(x)),
        _plain("square", _BASIC, lambda x: np.square(x)),
        _plain("rsqrt", _BASIC, lambda x: 1 / np.sqrt(x)),
        _plain("recip", _BASIC, lambda x: 1 / x),
        _F("rsub", _BASIC, _rsub, ("b",)),
        _plain("tan", _TRIGONOMETRIC, lambda x: np.tan(x)),
        _plain("tanh", _TRIGONOMETRIC, lambda x: np.tanh(x)),
        _plain("atan", _TRIGONOMETRIC, lambda x: np.arctan(x)),
        _plain("atanh", _TRIGONOMETRIC, lambda x: np.arctanh(x)),
        _plain("sin", _TRIGONOMETRIC, lambda x: np.sin(x)),
        _plain("asin", _TRIGONOMETRIC, lambda x: np.arcsin(x)),
        _plain("asinh", _TRIGONOMETRIC, lambda x: np.arcsinh(x)),
        _plain("cos", _TRIGONOMETRIC, lambda x: np.cos(x)),
        _plain("acos", _TRIGONOMETRIC, lambda x: np.arccos(x)),
        _plain("acosh", _TRIGONOMETRIC, lambda x: np.arccosh(x)),
        _plain("relu", _ACTIVATION, lambda x: np.maximum(x, 0)),
        _F("relu_max", _ACTIVATION, _relu_max, ("upper_limit",)),
        _F("relu_min", _ACTIVATION, _relu_min, ("lower_limit",)),
        _F("leaky_relu", _ACTIVATION, _leaky_relu, ("slope",)),
        _F("elu", _ACTIVATION, _elu, ("slope",)),
        _plain("gelu", _ACTIVATION, gelu),
        _plain("sigmoid", _ACTIVATION, sigmoid),
        _F("celu", _ACTIVATION, _celu, ("alpha", "alpha_recip")),
        _plain("silu", _ACTIVATION, lambda x: x * sigmoid(x)),
        _F("prelu", _ACTIVATION, _leaky_relu, ("alpha",)),
        _F("softplus", _ACTIVATION, _softplus, ("beta", "beta_reciprocal", "threshold")),
        _plain("softsign", _ACTIVATION, lambda x: x / (1 + np.abs(x))),
        _plain("hardsigmoid", _ACTIVATION, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
        _F("hardtanh", _ACTIVATION, _clip, ("min", "max")),
        _F("selu", _ACTIVATION, _selu, ("scale", "alpha")),
        _plain("frac", _ROUNDING, lambda x: x - np.trunc(x)),
        _plain("trunc", _ROUNDING, lambda x: np.trunc(x)),
        _F("round", _ROUNDING, _round, ("decimals",)),
        _plain("floor", _ROUNDING, lambda x: np.floor(x)),
        _plain("ceil", _ROUNDING, lambda x: np.ceil(x)),
        _F("clamp", _ROUNDING, _clip, ("min", "max")),
        _F("threshold", _ROUNDING, _threshold, ("threshold", "value")),
        _plain("sign", _ROUNDING, lambda x: np.sign(x)),
        # The specification defines 1 for positive numbers.
        _plain("signbit", _ROUNDING, lambda x: ~np.signbit(x)),
    )
}  # fmt: skip
"""Functions of `ttl.math` by name."""

COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
"""Elementwise comparisons of two expressions, with results 1 or 0."""


# `print` inside of kernels

ONE_OBJECT = "print takes one object of TT-Lang at a time, besides strings and numbers"


def debug_print(
    *values: Any, num_pages: int = 1, sep: str = " ", end: str = "\n", **rest: Any
) -> None:
    """Prints strings, numbers and at most one object of the language.

    Args:
        values: the values to print.
        num_pages: number of pages to print of a tensor: tiles, or rows.
        sep: separator between values.
        end: text after the last value.
        rest: further options of Python's print.
    """
    objects = [value for value in values if isinstance(value, Tensor | Block | DataflowBuffer)]
    if len(objects) > 1:
        raise error(ONE_OBJECT)
    texts = [_text(value, num_pages) for value in values]
    print(*texts, sep=sep, end=end, file=rest.get("file", sys.stdout))


def _text(value: Any, pages: int) -> str:
    if isinstance(value, DataflowBuffer):
        return value.describe()
    if isinstance(value, Block):
        return str(value.content())
    if isinstance(value, Tensor):
        return "\n".join(f"page {n}:\n{page}" for n, page in enumerate(_pages(value, pages)))
    return str(value)


def _pages(tensor: Tensor, count: int) -> list[np.ndarray]:
    if not tensor.is_tiled:
        rows = tensor.padded.reshape(-1, tensor.padded.shape[-1])
        return list(rows[:count])
    height, width = tensor.padded.shape[-2:]
    found: list[np.ndarray] = []
    for matrix in tensor.padded.reshape(-1, height, width):
        for row in range(0, height, TILE_SIDE):
            for column in range(0, width, TILE_SIDE):
                if len(found) == count:
                    return found
                found.append(matrix[row : row + TILE_SIDE, column : column + TILE_SIDE])
    return found


# Signposts: zones of kernels that are profiled on the device. The simulator has no timing.

ONLY_WITH = "ttl.signpost can be used with the with statement only"


class signpost:
    """`with ttl.signpost("read a"):` names a zone of a kernel."""

    def __init__(self, name: str) -> None:
        running_kernel("ttl.signpost")
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise error(f"the name of a signpost is a string, not a {type(name).__name__}")
        if is_dropped():
            raise error(ONLY_WITH)
        self.name = name

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass
