"""Reductions over windows: pooling, cumulative sums, other bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import cast

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Block, SSAValue

from ttcodegen.dialects.core.datatypes import (
    element_of,
    f32,
    i1,
    is_boolean,
    shape_of,
    tensor_type,
)
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.frontends.stablehlo.bodies import block_of, reducer, returned
from ttcodegen.frontends.stablehlo.complex_numbers import both
from ttcodegen.frontends.stablehlo.conversion import Complex, Conversion, Results, Rule, Value
from ttcodegen.frontends.stablehlo.movement import padded
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp, factors
from ttcodegen.frontends.stablehlo.reductions import (
    applied,
    is_neutral,
    neutral,
    reduced,
)
from ttcodegen.ops.core.builder import OpBuilder

_MAX_FOLDED_WINDOW = 256
"""Limit on the window elements that are combined sequentially."""


@dataclass(frozen=True)
class Windows:
    """Window attributes by dimension."""

    sizes: list[int]
    strides: list[int]
    base_dilation: list[int]
    dilation: list[int]
    padding: list[tuple[int, int]]

    @staticmethod
    def of(op: StableHLOOp, rank: int) -> Windows:
        """Window attributes of an operation."""
        ones = [1] * rank
        padding = np.asarray(op.get("padding", [[0, 0]] * rank)).reshape(rank, 2)
        return Windows(
            factors(op, "window_dimensions", rank),
            factors(op, "window_strides", rank, ones),
            factors(op, "base_dilations", rank, ones),
            factors(op, "window_dilations", rank, ones),
            [(int(low), int(high)) for low, high in padding],
        )

    @property
    def rank(self) -> int:
        return len(self.sizes)

    def extent(self, axis: int) -> int:
        """Extent of a dilated window."""
        return (self.sizes[axis] - 1) * self.dilation[axis] + 1

    def count(self, axis: int, size: int) -> int:
        """Counts the windows along a dimension of the given size."""
        low, high = self.padding[axis]
        base = (size - 1) * self.base_dilation[axis] + 1 if size else 0
        room = base + low + high - self.extent(axis)
        return room // self.strides[axis] + 1 if room >= 0 else 0

    def trivial(self, axis: int) -> bool:
        """Returns whether each element of a dimension is a window of its own."""
        return (
            self.sizes[axis] == 1
            and self.strides[axis] == 1
            and self.base_dilation[axis] == 1
            and self.padding[axis] == (0, 0)
        )


def _reduce_window(conversion: Conversion, op: StableHLOOp) -> Results:
    given = conversion.values(op)
    if len(given) == 2 and isinstance(given[0], Complex) and reducer(block_of(op)) == "sum":
        sums = [_of_tensors(conversion, op, part) for part in both(conversion, given)]
        return Complex(*(cast("SSAValue", each) for (each,) in sums))
    return _of_tensors(conversion, op, conversion.tensors(op))


def _of_tensors(
    conversion: Conversion, op: StableHLOOp, operands: Sequence[SSAValue]
) -> list[Value]:
    count = len(operands) // 2
    values, initial = operands[:count], operands[count:]
    windows = Windows.of(op, len(shape_of(values[0].type)))
    blocks = [block_of(op)]
    kinds = _kinds(blocks[0], count)
    if kinds is not None:
        found: list[Value] = []
        for kind, value, start in zip(kinds, values, initial, strict=True):
            pooled = _as_op(conversion, kind, value, start, windows)
            if pooled is None:
                break
            found.append(pooled)
        else:
            return found
    return _fold_windows(conversion, blocks[0], values, initial, windows)


def _kinds(block: Block, count: int) -> list[str] | None:
    """Reduction kind of each result of a body, or None if results interact."""
    if count == 1:
        kind = reducer(block)
        return None if kind is None else [kind]
    kinds: list[str] = []
    names = {"add": "sum", "maximum": "max", "minimum": "min", "multiply": "prod"}
    for index, value in enumerate(returned(block)):
        owner = value.owner
        if not isinstance(owner, StableHLOOp) or owner.short_name not in names:
            return None
        if set(owner.operands) != {block.args[index], block.args[count + index]}:
            return None
        kinds.append(names[owner.short_name])
    return kinds


def _as_op(
    conversion: Conversion, kind: str, value: SSAValue, initial: SSAValue, windows: Windows
) -> SSAValue | None:
    """Matches windows that a TTIR op reduces, else None."""
    if all(windows.trivial(axis) for axis in range(windows.rank)):
        return value if is_neutral(conversion, kind, initial) else None
    if not is_neutral(conversion, kind, initial):
        return None
    running = _as_cumulative(conversion, kind, value, windows)
    if running is not None:
        return running
    whole = _as_reduction(conversion, kind, value, initial, windows)
    if whole is not None:
        return whole
    if kind not in ("sum", "max", "min") or not isinstance(element_of(value.type), AnyFloat):
        return None
    if any(factor != 1 for factor in windows.base_dilation):
        return None
    if kind == "sum" and any(factor != 1 for factor in windows.dilation):
        return None
    if any(width < 0 for pair in windows.padding for width in pair):
        return None
    axes = [axis for axis in range(windows.rank) if not windows.trivial(axis)]
    builder = conversion.builder
    found = builder.like("neg", value) if kind == "min" else value
    for first in range(0, len(axes), 2):
        found = _pooled_image(conversion, kind, found, windows, axes[first : first + 2])
    return builder.like("neg", found) if kind == "min" else found


def _as_cumulative(
    conversion: Conversion, kind: str, value: SSAValue, windows: Windows
) -> SSAValue | None:
    """Matches a cumulative sum or product along one dimension, in either direction."""
    axes = [axis for axis in range(windows.rank) if not windows.trivial(axis)]
    if len(axes) != 1 or kind not in ("sum", "prod"):
        return None
    (axis,) = axes
    size = shape_of(value.type)[axis]
    if windows.sizes[axis] != size or windows.strides[axis] != 1 or size == 1:
        return None
    if windows.dilation[axis] != 1 or windows.base_dilation[axis] != 1:
        return None
    if is_boolean(element_of(value.type)):
        return None
    builder = conversion.builder
    name = {"sum": "cumsum", "prod": "cumprod"}[kind]
    if windows.padding[axis] == (size - 1, 0):
        return builder.like(name, value, dim=axis)
    if windows.padding[axis] == (0, size - 1):
        backwards = builder.like("reverse", value, dimensions=[axis])
        return builder.like("reverse", builder.like(name, backwards, dim=axis), dimensions=[axis])
    return None


def _as_reduction(
    conversion: Conversion, kind: str, value: SSAValue, initial: SSAValue, windows: Windows
) -> SSAValue | None:
    """Matches a single window that covers whole dimensions: a reduction over them."""
    axes = [axis for axis in range(windows.rank) if not windows.trivial(axis)]
    shape = list(shape_of(value.type))
    if any(
        windows.sizes[axis] != shape[axis]
        or windows.padding[axis] != (0, 0)
        or windows.base_dilation[axis] != 1
        or windows.dilation[axis] != 1
        for axis in axes
    ):
        return None
    # Global pooling of images stays a pooling op.
    if len(axes) == 2 and kind in ("sum", "max") and isinstance(element_of(value.type), AnyFloat):
        return None
    found = reduced(conversion, kind, value, initial, axes)
    if found is None:
        return None
    return conversion.builder.reshape(
        found, [1 if axis in axes else size for axis, size in enumerate(shape)]
    )


def _pooled_image(
    conversion: Conversion, kind: str, value: SSAValue, windows: Windows, axes: Sequence[int]
) -> SSAValue:
    """Pooling over one or two dimensions, which become height and width of images."""
    builder = conversion.builder
    shape = shape_of(value.type)
    others = [axis for axis in range(len(shape)) if axis not in axes]
    # The last of the others are the channels, unless the image needs that dimension.
    batch, channels = others[:-1], others[-1:]
    order = [*batch, *axes, *channels]
    image = builder.permute(value, order)
    rows = prod(shape[axis] for axis in batch)
    depth = prod(shape[axis] for axis in channels)
    extents = [shape[axis] for axis in axes]
    missing = [1] * (2 - len(axes))
    image = builder.reshape(image, [rows, *missing, *extents, depth])
    sizes = [windows.count(axis, shape[axis]) for axis in axes]
    padding = [(0, 0)] * len(missing) + [windows.padding[axis] for axis in axes]
    kernel = [*missing, *(windows.sizes[axis] for axis in axes)]
    attributes = {
        "kernel": kernel,
        "stride": [*missing, *(windows.strides[axis] for axis in axes)],
        "dilation": [*missing, *(windows.dilation[axis] for axis in axes)],
        "padding": [padding[0][0], padding[1][0], padding[0][1], padding[1][1]],
        "ceil_mode": False,
    }
    if kind == "sum":
        attributes["count_include_pad"] = True
    result = tensor_type(element_of(value.type), [rows, *missing, *sizes, depth])
    name = "avg_pool2d" if kind == "sum" else "max_pool2d"
    pooled = builder.emit(name, [image], result, **attributes)
    if kind == "sum":
        count = conversion.filled_like(prod(kernel), pooled)
        pooled = builder.like("multiply", pooled, count)
    pooled = builder.reshape(
        pooled,
        [*(shape[axis] for axis in batch), *sizes, *(shape[axis] for axis in channels)],
    )
    return builder.permute(pooled, [order.index(axis) for axis in range(len(shape))])


def _fold_windows(
    conversion: Conversion,
    block: Block,
    values: Sequence[SSAValue],
    initial: Sequence[SSAValue],
    windows: Windows,
) -> list[Value]:
    """Applies an arbitrary body to the elements at each window position in turn."""
    builder = conversion.builder
    rank = windows.rank
    shape = shape_of(values[0].type)
    sizes = [windows.count(axis, shape[axis]) for axis in range(rank)]
    low, high = ([pair[side] for pair in windows.padding] for side in range(2))
    gaps = [factor - 1 for factor in windows.base_dilation]
    wide = [
        padded(conversion, value, start, low, high, gaps)
        for value, start in zip(values, initial, strict=True)
    ]
    if prod(windows.sizes) > _MAX_FOLDED_WINDOW:
        return _fold_by_doubling(conversion, block, wide, initial, sizes, windows)
    found = [
        conversion.broadcast_to(builder.reshape(start, [1] * rank), sizes) for start in initial
    ]
    for place in product(*(range(size) for size in windows.sizes)):
        begins = [offset * step for offset, step in zip(place, windows.dilation, strict=True)]
        ends = [
            begin + (size - 1) * step + 1
            for begin, size, step in zip(begins, sizes, windows.strides, strict=True)
        ]
        parts = [builder.slice(value, begins, ends, windows.strides) for value in wide]
        found = applied(conversion, block, [*found, *parts])
    return list(found)


def _fold_by_doubling(
    conversion: Conversion,
    block: Block,
    wide: Sequence[SSAValue],
    initial: Sequence[SSAValue],
    sizes: Sequence[int],
    windows: Windows,
) -> list[Value]:
    """Reduces a long window along one dimension by doubling.

    Windows of power-of-two lengths are combined to the window's length.
    """
    axes = [axis for axis in range(windows.rank) if windows.sizes[axis] > 1]
    if len(axes) != 1 or windows.dilation[axes[0]] != 1:
        raise ValueError(
            f"windows of {prod(windows.sizes)} elements with a body that is no known reduction "
            f"are not supported"
        )
    (axis,) = axes
    builder = conversion.builder
    target, step = windows.sizes[axis], windows.strides[axis]
    # `doubled[i]` combines the elements i to i + length.
    doubled, length = list(wide), 1
    parts: list[list[SSAValue]] = []
    begin = 0
    while length <= target:
        if target & length:
            end = begin + (sizes[axis] - 1) * step + 1
            parts.append(
                [_strided_slice(builder, each, axis, begin, end, step) for each in doubled]
            )
            begin += length
        rest = shape_of(doubled[0].type)[axis] - length
        if 2 * length <= target:
            first = [builder.slice_dim(value, axis, 0, rest) for value in doubled]
            second = [builder.slice_dim(value, axis, length, length + rest) for value in doubled]
            doubled = applied(conversion, block, [*first, *second])
        length *= 2
    found = [
        conversion.broadcast_to(builder.reshape(start, [1] * windows.rank), sizes)
        for start in initial
    ]
    for part in parts:
        found = applied(conversion, block, [*found, *part])
    return list(found)


def _strided_slice(
    builder: OpBuilder, value: SSAValue, axis: int, begin: int, end: int, step: int
) -> SSAValue:
    """Slices every `step`-th element of a dimension."""
    shape = shape_of(value.type)
    begins, ends, steps = [0] * len(shape), list(shape), [1] * len(shape)
    begins[axis], ends[axis], steps[axis] = begin, end, step
    return builder.slice(value, begins, ends, steps)


def _select_and_scatter(conversion: Conversion, op: StableHLOOp) -> Value:
    """Adds each source element at the extreme of its window; for booleans, ors it."""
    operand, source, initial = conversion.tensors(op)
    chosen = _selected_extreme(block_of(op, 0))
    windows = Windows.of(op, len(shape_of(operand.type)))
    is_true = is_boolean(element_of(operand.type))
    joins = reducer(block_of(op, 1)) == ("or" if is_true else "sum")
    if chosen is None or not joins or prod(windows.sizes) > _MAX_FOLDED_WINDOW:
        raise ValueError("only sums at the largest or smallest of small windows are supported")
    if not is_true:
        return _scatter_sums(conversion, operand, source, initial, windows, chosen)
    builder = conversion.builder
    operand, source, initial = (
        builder.typecast(value, f32) for value in (operand, source, initial)
    )
    found = _scatter_sums(conversion, operand, source, initial, windows, chosen)
    return builder.like("ne", found, conversion.filled_like(0, found), element=i1)


def _selected_extreme(select: Block) -> tuple[str, bool] | None:
    """Extreme that a comparison selects, and whether ties select the last element."""
    compare = returned(select)[0].owner
    if not isinstance(compare, StableHLOOp) or compare.short_name != "compare":
        return None
    if list(compare.operands) != list(select.args):
        return None
    direction = str(compare["comparison_direction"]).upper()[-2:]
    return {
        "GE": ("max", False),
        "GT": ("max", True),
        "LE": ("min", False),
        "LT": ("min", True),
    }.get(direction)


def _scatter_sums(
    conversion: Conversion,
    operand: SSAValue,
    source: SSAValue,
    initial: SSAValue,
    windows: Windows,
    chosen: tuple[str, bool],
) -> SSAValue:
    """Sums source elements at the positions of their windows' extremes."""
    builder = conversion.builder
    rank = windows.rank
    element = element_of(operand.type)
    shape = shape_of(operand.type)
    sizes = shape_of(source.type)
    low, high = ([pair[side] for pair in windows.padding] for side in range(2))
    kind, is_last = chosen
    bound = neutral(kind, element)
    assert bound is not None
    outside = conversion.filled(bound, [], element)
    zero = conversion.filled(0, [], element)
    wide = padded(conversion, operand, outside, low, high, [0] * rank)
    places = list(product(*(range(size) for size in windows.sizes)))
    if is_last:
        places.reverse()

    def part(place: Sequence[int]) -> SSAValue:
        ends = [
            begin + (size - 1) * step + 1
            for begin, size, step in zip(place, sizes, windows.strides, strict=True)
        ]
        return builder.slice(wide, place, ends, windows.strides)

    parts = [part(place) for place in places]
    best = parts[0]
    for other in parts[1:]:
        best = builder.like("maximum" if kind == "max" else "minimum", best, other)
    free = conversion.filled(1, sizes, element)
    total: SSAValue | None = None
    for place, one in zip(places, parts, strict=True):
        hit = builder.typecast(builder.like("eq", one, best, element=f32), element)
        hit = builder.like("multiply", hit, free)
        free = builder.like("subtract", free, hit)
        value = builder.like("multiply", hit, source)
        padded_term = padded(
            conversion,
            value,
            zero,
            [begin for begin in place],
            [
                total_size - begin - ((size - 1) * step + 1)
                for begin, size, step, total_size in zip(
                    place, sizes, windows.strides, shape_of(wide.type), strict=True
                )
            ],
            [step - 1 for step in windows.strides],
        )
        total = padded_term if total is None else builder.like("add", total, padded_term)
    assert total is not None
    found = builder.slice(
        total, low, [begin + size for begin, size in zip(low, shape, strict=True)]
    )
    if conversion.number(initial) != 0:
        start = conversion.broadcast_to(builder.reshape(initial, [1] * rank), shape)
        found = builder.like("add", found, start)
    return found


RULES: dict[str, Rule] = {
    "reduce_window": _reduce_window,
    "select_and_scatter": _select_and_scatter,
}
