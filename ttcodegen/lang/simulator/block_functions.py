"""Functions of whole blocks: broadcasting, reduction, transposition, masks and shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.lang.simulator import shape_rules
from ttcodegen.lang.simulator.buffer_making import check_tile
from ttcodegen.lang.simulator.buffers import DataflowBuffer
from ttcodegen.lang.simulator.context import KernelKind, running_kernel
from ttcodegen.lang.simulator.expressions import (
    Array,
    BlockExpr,
    element_shape,
    elementwise,
    operand,
)
from ttcodegen.lang.simulator.locations import ProgramError, error
from ttcodegen.lang.simulator.recording import computed
from ttcodegen.lang.simulator.shape_rules import (
    broadcast_axes,
    squeezed,
    tiled_only,
    transposed_shape,
    unsqueezed,
)
from ttcodegen.lang.simulator.shapes import Shape, checked_shape
from ttcodegen.lang.simulator.tensors import ROW_MAJOR_LAYOUT, TILE_LAYOUT
from ttcodegen.numerics.rounding import rounded_for_device

EXPR = slice(1)
"""The first operand."""


def _target_shape(what: str, target: BlockExpr | None, shape: object) -> Shape:
    """The shape of a result, which programs for older releases give as the block it is for."""
    if target is not None and not isinstance(target, BlockExpr):  # pyright: ignore
        raise error(f"the target of {what} is a block, not a {type(target).__name__}")
    if (target is None) == (shape is None):
        raise error(f"{what} needs the shape of its result")
    return target.shape if target is not None else checked_shape(what, shape)


def _tiled(what: str, expr: BlockExpr) -> BlockExpr:
    given = operand(what, expr)
    tiled_only(what, given.is_tiled)
    return given


def broadcast(
    expr: BlockExpr,
    target: BlockExpr | None = None,
    dims: Sequence[int] = (),
    shape: int | Shape | None = None,
) -> BlockExpr:
    """Repeats a block along dimensions, which have the size 1 in it.

    In the last two dimensions it is the first row, column or element of each tile that is repeated.
    """
    what = "ttl.block.broadcast"
    given = _tiled(what, expr)
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
    given = _tiled(what, expr)
    sizes, axes = shape_rules.reduced(what, given.shape, dims, shape)
    elements = given.value()
    # numpy adds integers up in 64 bits.
    reduced = function(elements, axis=axes, keepdims=True).astype(elements.dtype, copy=False)
    # The result is in the first row, column or element of the tiles.
    array = np.zeros(element_shape(sizes, True), reduced.dtype)
    array[tuple(slice(size) for size in reduced.shape)] = reduced
    return BlockExpr(array, sizes, True, computed(name, sizes, [given], axes))


def reduce_sum(expr: BlockExpr, dims: Sequence[int], shape: int | Shape) -> BlockExpr:
    """The sum over dimensions, which have the size 1 in `shape`."""
    return _reduce("reduce_sum", np.sum, expr, dims, shape)


def reduce_max(expr: BlockExpr, dims: Sequence[int], shape: int | Shape) -> BlockExpr:
    """The maximum over dimensions, which have the size 1 in `shape`."""
    return _reduce("reduce_max", np.max, expr, dims, shape)


def transpose(expr: BlockExpr) -> BlockExpr:
    """The transposed block, of two dimensions."""
    given = _tiled("ttl.block.transpose", expr)
    shape = transposed_shape(given.shape)
    origin = computed("transpose", shape, [given])
    return BlockExpr(given.value().T.copy(), shape, True, origin)


def filled_layout(shape: Shape, buffers: Sequence[DataflowBuffer]) -> bool:
    """True if a block of one number is tiled: the specification gives it a shape only. It is what
    the node's buffers of that shape are, else what all of them are, else tiled if it can be."""
    found = {each.is_tiled for each in buffers if each.shape == shape}
    found = found or {each.is_tiled for each in buffers}
    return found.pop() if len(found) == 1 else len(shape) >= 2


def filled_like(expr: BlockExpr, number: float) -> BlockExpr:
    """A block of one number with the shape of another one."""
    return _filled(number, expr.shape, expr.is_tiled)


def _filled(value: float, shape: Shape, is_tiled: bool) -> BlockExpr:
    array = np.full(element_shape(shape, is_tiled), value, np.float32)
    origin = computed("fill", shape, [], [float(value)])
    return BlockExpr(array, shape, is_tiled, origin, is_number=True)


def checked_layout(layout: object, dtype: object, tile: object) -> bool | None:
    """True if the layout that a fill is given is tiled, None if it is given none.

    Raises:
        ProgramError: if there is no such layout, data type or tile.
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
    """A block of one value: `fill(0, shape=(1, 2))`; programs for older releases give the block
    that it is for, before the value. It is rounded to `dtype` if that is given."""
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
    return _filled(rounded_number(value, dtype), sizes, is_tiled)


def rounded_number(value: float, dtype: DataType | None) -> float:
    """A number as an element of a data type is."""
    if dtype is None:
        return value
    return float(rounded_for_device(np.array([value]), dtype)[0])


def _masked(number: float, x: Array, mask: Array) -> Array:
    if np.isinf(number) and x.dtype.kind != "f":
        raise no_infinity()
    return np.where(mask == 1, x.dtype.type(number), x)


def no_infinity() -> ProgramError:
    """The error of a program that masks integers with infinity."""
    return error("ttl.block.mask_posinf takes blocks of floats: integers have no infinity")


def _chosen(condition: Array, true: Array, false: Array) -> Array:
    return np.where(condition != 0, true, false)


def mask(expr: BlockExpr, mask: BlockExpr) -> BlockExpr:
    """0 where the mask is 1."""
    return elementwise("ttl.block.mask", partial(_masked, 0.0), expr, mask, typed=EXPR)


def mask_posinf(expr: BlockExpr, mask: BlockExpr) -> BlockExpr:
    """Positive infinity where the mask is 1."""
    what = "ttl.block.mask_posinf"
    return elementwise(what, partial(_masked, np.inf), expr, mask, typed=EXPR)


def where(condition: BlockExpr, true_value: BlockExpr, false_value: BlockExpr) -> BlockExpr:
    """The element of `true_value` where the condition is 1, that of `false_value` where it is 0."""
    return elementwise(
        "ttl.block.where",
        _chosen,
        condition,
        true_value,
        false_value,
        typed=slice(1, None),
    )


def _reshaped(given: BlockExpr, shape: Shape, kept: Shape) -> BlockExpr:
    """The same elements in a shape that has dimensions of 1 more or less; `kept` are the dimensions
    of the longer shape that the shorter one has, too."""
    origin = computed("reshape", shape, [given], kept)
    if not given.is_tiled:
        return BlockExpr(given.value().reshape(shape).copy(), shape, False, origin)
    grid = (*given.shape[:-2], given.shape[-2], TILE_SIDE, given.shape[-1], TILE_SIDE)
    tiles = np.moveaxis(given.value().reshape(grid), -3, -2)
    laid = np.moveaxis(tiles.reshape(*shape, TILE_SIDE, TILE_SIDE), -2, -3)
    return BlockExpr(laid.reshape(element_shape(shape, True)).copy(), shape, True, origin)


def squeeze(expr: BlockExpr, dims: int | Sequence[int]) -> BlockExpr:
    """The block without dimensions, which have the size 1."""
    given = operand("ttl.block.squeeze", expr)
    shape, kept = squeezed(given.shape, dims, is_tiled=given.is_tiled)
    return _reshaped(given, shape, kept)


def unsqueeze(expr: BlockExpr, dims: int | Sequence[int]) -> BlockExpr:
    """The block with further dimensions of the size 1, at positions in the new shape."""
    given = operand("ttl.block.unsqueeze", expr)
    shape, kept = unsqueezed(given.shape, dims)
    return _reshaped(given, shape, kept)
