"""Sliding windows shared by convolution and pooling.

TTIR gives stride, padding and dilation as one number or an array and has the image dimensions in
any order; the library takes arrays of fixed length and images as rows of channels,
(1, 1, N*H*W, C). Padding is (top, left, bottom, right) in TTIR, (top, bottom, left, right) in the
library (tt-metal, ttnn/operations/sliding_window/sliding_window.cpp).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type
from ttcodegen.dialects.operations.attribute_kinds import INTEGER, INTEGERS, AttributeKind
from ttcodegen.dialects.operations.compute_config import Arithmetic
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import Text
from ttcodegen.ops.core.definition import AttributeSpec, Call, attribute
from ttcodegen.ops.core.dimensions import known_parameter, require
from ttcodegen.ops.core.engine import (
    Memory,
    add_product,
    first_factor,
    round_in_place,
    rounded_sums,
    rounds_sums,
    second_factor,
)
from ttcodegen.ops.matmul.matmul import as_factor

if TYPE_CHECKING:
    import numpy
    from xdsl.dialects.builtin import IntegerAttr


class FlattenedImage(NamedTuple):
    """Batch size, height and width of an image given as rows, (1, 1, N*H*W, C)."""

    batch_size: int
    input_height: int
    input_width: int


_FLATTENED_FIELDS = ("batch_size", "input_height", "input_width")


def _decode_flattened(value: Attribute) -> FlattenedImage:
    """Reads `#ttir<flattened_compat batch_size = 1, input_height = 2, input_width = 3>`."""
    found = dict(re.findall(r"\"?(\w+)\"? = (\d+)", str(value)))
    return FlattenedImage(*(int(found[name]) for name in _FLATTENED_FIELDS))


def _encode_flattened(value: FlattenedImage) -> Attribute:
    fields: dict[str, IntegerAttr] = {}
    for name in _FLATTENED_FIELDS:
        encoded = INTEGER.encode(getattr(value, name))
        fields[name] = encoded  # pyright: ignore[reportArgumentType]
    return DictionaryAttr(fields)


FLATTENED = AttributeKind[FlattenedImage](
    "batch_size, input_height and input_width", _decode_flattened, _encode_flattened
)
FLATTENED_ATTRIBUTE = attribute("flattened_compat_info", FLATTENED, None)
IMAGE_DIMS = tuple(
    attribute(f"{name}_dim", INTEGER, position)
    for position, name in enumerate(("batch", "height", "width", "channel"))
)


def _read(source: CatalogueOp | Call, name: str) -> Any:
    """Returns an attribute of an op or a call of it, None if it has none of that name."""
    if isinstance(source, Call):
        return source.attributes.get(name)
    known = any(spec.name == name for spec in source.definition.attributes)
    return source.parameter(name) if known else None


def per_dimension(op: CatalogueOp | Call, name: str, count: int) -> list[int]:
    """Returns an attribute with one number for each window dimension, repeating a single one."""
    values = _read(op, name)
    if len(values) == 1:
        values = list(values) * count
    if len(values) != count:
        raise VerifyException(
            f"{op.name}: expected 1 or {count} numbers in '{name}', found {len(values)}"
        )
    return values


def edges(op: CatalogueOp | Call, count: int) -> list[tuple[int, int]]:
    """Returns the padding before and after each window dimension."""
    values = _read(op, "padding")
    if len(values) == 2 * count:
        pairs = list(zip(values[:count], values[count:], strict=True))
    elif len(values) in (1, count):
        pairs = [(width, width) for width in per_dimension(op, "padding", count)]
    else:
        raise VerifyException(
            f"{op.name}: expected 1, {count} or {2 * count} numbers in 'padding', "
            f"found {len(values)}"
        )
    if any(width < 0 for pair in pairs for width in pair):
        raise VerifyException(f"{op.name}: padding must not be negative, found {tuple(values)}")
    return pairs


MOST_PADDING = 1 << 16
"""Largest supported padding: golden and CPU backend hold the padded image in memory."""


def _limit_padding(op: CatalogueOp | Call, window: Window) -> None:
    """Raises VerifyException for padding above `MOST_PADDING`."""
    widest = max((width for pair in window.padding for width in pair), default=0)
    if widest > MOST_PADDING:
        raise VerifyException(
            f"{op.name}: padding of at most {MOST_PADDING} is supported, found {widest}"
        )


@dataclass(frozen=True)
class Window:
    """Kernel size, stride, padding and dilation of a sliding window."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]
    ceil_mode: bool = False

    @staticmethod
    def of(op: CatalogueOp | Call, kernel: Sequence[int], dilated: bool = True) -> Window:
        """Returns the window of a TTIR op or a call of it; raises VerifyException if it is
        invalid.
        """
        count = len(kernel)
        window = Window(
            tuple(kernel),
            tuple(per_dimension(op, "stride", count)),
            tuple(edges(op, count)),
            tuple(per_dimension(op, "dilation", count)) if dilated else (1,) * count,
            bool(_read(op, "ceil_mode")),
        )
        _limit_padding(op, window)
        for name in ("kernel", "stride", "dilation"):
            if any(size < 1 for size in getattr(window, name)):
                raise VerifyException(
                    f"{op.name}: {name} must be positive, found {getattr(window, name)}"
                )
        return window

    def reach(self, axis: int) -> int:
        """Returns the extent of the dilated kernel."""
        return self.dilation[axis] * (self.kernel[axis] - 1) + 1

    def output_size(self, axis: int, size: int) -> int:
        """Returns the number of windows along a dimension.

        `ceil_mode` adds a window that starts inside the image or the padding before it and ends
        after the padding after it.
        """
        before, after = self.padding[axis]
        room = size + before + after - self.reach(axis)
        if room < 0:
            return 0
        count = room // self.stride[axis] + 1
        if self.ceil_mode:
            count = -(-room // self.stride[axis]) + 1
            if (count - 1) * self.stride[axis] >= size + before:
                count -= 1
        return count

    def output_sizes(self, op: CatalogueOp, sizes: Sequence[int]) -> tuple[int, ...]:
        """Returns the number of windows; raises VerifyException if the kernel does not fit."""
        found = tuple(self.output_size(axis, size) for axis, size in enumerate(sizes))
        if any(size < 1 for size in found):
            raise VerifyException(
                f"{op.name}: a kernel of {self.kernel} with dilation {self.dilation} does not fit "
                f"into {tuple(sizes)} padded by {self.padding}"
            )
        return found

    def overhang(self, axis: int, size: int) -> int:
        """Returns how far the last window reaches past the padding."""
        last = (self.output_size(axis, size) - 1) * self.stride[axis] + self.reach(axis)
        return max(0, last - size - sum(self.padding[axis]))


def window_on_cpu(window: Window) -> dict[str, Sequence[int] | None]:
    """Fields of a window in the structures of `support/cpu`; None for defaults."""
    before, after = zip(*window.padding, strict=True)
    fields = {"stride": (window.stride, 1), "before": (before, 0), "after": (after, 0)}
    fields["dilation"] = (window.dilation, 1)
    return {
        name: None if all(number == usual for number in numbers) else numbers
        for name, (numbers, usual) in fields.items()
    }


def window_attributes(dilation: bool = True) -> tuple[AttributeSpec, ...]:
    """Returns the TTIR attributes stride, padding and dilation."""
    names = ("stride", "padding", "dilation") if dilation else ("stride", "padding")
    return tuple(attribute(name, INTEGERS) for name in names)


# Images of TTIR ops


def surrounded(
    builder: OpBuilder, value: SSAValue, widths: Sequence[tuple[int, int]], fill: float = 0.0
) -> SSAValue:
    """Emits a TTIR pad of every dimension; returns `value` if all widths are 0."""
    if not any(any(pair) for pair in widths):
        return value
    shape = [
        before + size + after
        for size, (before, after) in zip(shape_of(value.type), widths, strict=True)
    ]
    result = tensor_type(element_of(value.type), shape)
    padding = [width for pair in widths for width in pair]
    return builder.emit("pad", [value], result, padding=padding, value=fill)


def image_order(op: CatalogueOp) -> list[int]:
    """Returns the permutation of an image to batch, height, width, channel."""
    order = [op.parameter(spec.name) for spec in IMAGE_DIMS]
    if sorted(order) != [0, 1, 2, 3]:
        raise VerifyException(
            f"{op.name}: batch, height, width and channel dimension must be 0 to 3 in some order, "
            f"found {tuple(order)}"
        )
    return order


def image_shape(op: CatalogueOp, order: Sequence[int] = (0, 1, 2, 3)) -> tuple[int, int, int, int]:
    """Returns batch, height, width and channels of operand `input`, also if flattened."""
    shape = op.shape("input")
    if len(shape) != 4:
        raise VerifyException(f"{op.name}: expected an input of rank 4, found {shape}")
    n, h, w, c = (shape[axis] for axis in order)
    flattened: FlattenedImage | None = op.parameter(FLATTENED_ATTRIBUTE.name)
    if flattened is None:
        return n, h, w, c
    expected = flattened.batch_size * flattened.input_height * flattened.input_width
    if (n, h, w) != (1, 1, expected):
        raise VerifyException(
            f"{op.name}: expected an input of shape {(1, 1, expected, c)} as "
            f"'{FLATTENED_ATTRIBUTE.name}' says, found {shape}"
        )
    return flattened.batch_size, flattened.input_height, flattened.input_width, c


def image_of(call: Call, order: Sequence[int] = (0, 1, 2, 3)) -> numpy.ndarray:
    """Returns operand `input` as (N, H, W, C), also if it is flattened."""
    x = call.array("input")
    flattened: FlattenedImage | None = call[FLATTENED_ATTRIBUTE.name]
    return np.transpose(x, order) if flattened is None else x.reshape(*flattened, x.shape[-1])


def expect_image(
    op: CatalogueOp,
    expected: tuple[int, int, int, int],
    order: Sequence[int] = (0, 1, 2, 3),
) -> None:
    """Raises VerifyException unless every result is the expected image.

    `order` is the order of its dimensions; it is flattened if the operand is.
    """
    n, h, w, c = expected
    if op.parameter(FLATTENED_ATTRIBUTE.name) is not None:
        expected = (1, 1, n * h * w, c)
    for result in op.results:
        shape = shape_of(result.type)
        found = tuple(shape[axis] for axis in order) if len(shape) == 4 else shape
        if found != expected:
            wanted = tuple(expected[order.index(axis)] for axis in range(4))
            raise VerifyException(f"{op.name}: expected a result of shape {wanted}, found {shape}")


def as_rows(builder: OpBuilder, value: SSAValue, order: Sequence[int]) -> SSAValue:
    """Converts an image to the library's rows of channels, (1, 1, N*H*W, C)."""
    value = builder.permute(value, order)
    n, h, w, c = shape_of(value.type)
    return builder.reshape(value, [1, 1, n * h * w, c])


def from_rows(
    builder: OpBuilder, value: SSAValue, shape: Sequence[int], order: Sequence[int]
) -> SSAValue:
    """Converts rows of channels to an image of that shape and order of dimensions."""
    value = builder.reshape(value, [shape[axis] for axis in order])
    return builder.permute(value, sorted(range(len(order)), key=order.__getitem__))


def library_padding(window: Window) -> list[int]:
    """Returns (height, width) for symmetric padding, else (top, bottom, left, right)."""
    if all(before == after for before, after in window.padding):
        return [before for before, _ in window.padding]
    return [width for pair in window.padding for width in pair]


def library_window(call: Call, kernel: Sequence[int]) -> Window:
    """Returns the window of a TTNN call from its attributes."""
    padding = call["padding"]
    if len(padding) == len(kernel):
        padding = [width for width in padding for _ in range(2)]
    return Window(
        tuple(kernel),
        tuple(call["stride"]),
        tuple(zip(padding[::2], padding[1::2], strict=True)),
        tuple(call.attributes.get("dilation") or (1,) * len(kernel)),
        bool(call.attributes.get("ceil_mode")),
    )


def verified_library_window(op: CatalogueOp, kernel: Sequence[int]) -> Window:
    """Returns the window of a TTNN op; raises VerifyException if it is invalid."""
    count = len(op.parameter("kernel_size"))
    require(op, count == len(kernel) == 2, "2 numbers in 'kernel_size'", tuple(kernel))
    values: dict[str, list[int]] = {"kernel_size": list(kernel)}
    for name, default, counts in (
        ("stride", [], (count,)),
        ("padding", [0, 0], (count, 2 * count)),
        ("dilation", [1, 1], (count,)),
    ):
        values[name] = found = known_parameter(op, name, default)
        expected = " or ".join(str(number) for number in counts)
        require(op, len(found) in counts, f"{expected} numbers in '{name}'", tuple(found))
        least = 0 if name == "padding" else 1
        require(op, min(found) >= least, f"numbers of {least} or more in '{name}'", tuple(found))
    require(op, min(kernel) >= 1, "positive numbers in 'kernel_size'", tuple(kernel))
    padding = values["padding"]
    if len(padding) == count:
        padding = [width for width in padding for _ in range(2)]
    window = Window(
        tuple(kernel),
        tuple(values["stride"]),
        tuple(zip(padding[::2], padding[1::2], strict=True)),
        tuple(values["dilation"]),
        bool(known_parameter(op, "ceil_mode", False)),
    )
    _limit_padding(op, window)
    return window


def array_text(values: Sequence[int]) -> Text:
    """Returns a `std::array<uint32_t, n>` expression."""
    elements = ", ".join(str(value) for value in values)
    return Text(f"std::array<uint32_t, {len(values)}>{{{elements}}}")


# Numpy semantics; images are (N, positions..., C).

_COLUMNS = 1 << 22
"""Upper bound on elements of unrolled windows held at once, to fit the cache."""
_PART = 1 << 21
"""Upper bound on the result elements computed at once without unrolled windows."""
_WIDE = 256
"""Channels from which the matmuls of single kernel elements dominate their accumulation."""


def padded(
    x: numpy.ndarray, window: Window, fill: float = 0.0, replicate: bool = False
) -> numpy.ndarray:
    """Pads an image, with `ceil_mode` also by the overhang of the last windows."""
    widths = [(0, 0)]
    for axis, (before, after) in enumerate(window.padding):
        widths.append((before, after + window.overhang(axis, x.shape[axis + 1])))
    widths.append((0, 0))
    if all(pair == (0, 0) for pair in widths):
        return x
    if replicate:
        return np.pad(x, widths, mode="edge")
    return np.pad(x, widths, constant_values=fill)


def taps(
    x: numpy.ndarray, window: Window, sizes: Sequence[int], tap: Sequence[int]
) -> numpy.ndarray:
    """Strided view of the padded image for one kernel element over all windows."""
    slices = [slice(None)]
    for axis, (offset, count) in enumerate(zip(tap, sizes, strict=True)):
        start = offset * window.dilation[axis]
        slices.append(
            slice(start, start + (count - 1) * window.stride[axis] + 1, window.stride[axis])
        )
    return x[tuple(slices)]


_MEMORY = Memory()
"""Golden and flatbuffer runs often compute the same convolution."""


def convolution(
    x: numpy.ndarray,
    weight: numpy.ndarray,
    window: Window,
    groups: int,
    replicate: bool = False,
    arithmetic: Arithmetic | None = None,
) -> numpy.ndarray:
    """Cross-correlation of (N, positions..., Ci) with a weight (Co, Ci/groups, kernel...).

    The result may be memoized: it must not be modified.
    """
    sizes = tuple(window.output_size(axis, size) for axis, size in enumerate(x.shape[1:-1]))
    # Windows of a non-contiguous image would be copied element by element.
    x = np.ascontiguousarray(padded(x, window, replicate=replicate))
    inside = Window(window.kernel, window.stride, ((0, 0),) * len(sizes), window.dilation)
    products = x.shape[0] * prod(sizes) * weight.size
    x, weight = first_factor(x, arithmetic), second_factor(weight, arithmetic)
    narrow = rounds_sums(arithmetic, products, weight.size // max(1, weight.shape[0]))
    return _MEMORY.result(products, _convolution, x, weight, inside, sizes, groups, narrow)


def _convolution(
    x: numpy.ndarray,
    weight: numpy.ndarray,
    window: Window,
    sizes: tuple[int, ...],
    groups: int,
    narrow_sums: bool,
) -> numpy.ndarray:
    """Convolution of a padded image with a result of these sizes."""
    outputs, width = weight.shape[:2]
    x, weight = as_factor(x), as_factor(weight)
    result = np.zeros((x.shape[0], *sizes, groups, outputs // groups), dtype=x.dtype)
    neighbours = len(sizes) > 1 and window.stride[-2:] == (1, 1)
    by_tap = neighbours and width >= _WIDE and prod(sizes[-2:]) >= _WIDE
    if result.size and weight.size:  # Empty sums are 0.
        add = _add_tap_by_tap if by_tap else _add_row_by_row
        add(result, x, weight, window, narrow_sums)
    return result.reshape(x.shape[0], *sizes, outputs)


def _add_tap_by_tap(
    result: numpy.ndarray,
    x: numpy.ndarray,
    weight: numpy.ndarray,
    window: Window,
    narrow_sums: bool,
) -> None:
    """Adds one matmul (Ci/groups, Co/groups) per kernel element, without copying windows.

    The elements that a kernel element covers in some rows of a plane are a contiguous range, which
    includes those between the last window of a row and the first of the next; their results are
    dropped.
    """
    batch, *sizes, groups, outputs = result.shape
    width, (height, line) = weight.shape[1], x.shape[-3:-1]
    # (kernel..., groups, Ci/groups, Co/groups)
    grouped = weight.reshape(groups, outputs, width, *window.kernel)
    matrices = np.ascontiguousarray(np.moveaxis(grouped, (0, 2, 1), (-3, -2, -1)))
    planes = x.reshape(*x.shape[:-3], height * line, groups, width)
    step = max(1, min(_PART // (line * outputs), sizes[-2]))
    total, product = (np.empty((step * line, outputs), dtype=x.dtype) for _ in range(2))
    depths = (
        [slice(at, at + TILE_SIDE) for at in range(0, width, TILE_SIDE)]
        if narrow_sums
        else [slice(None)]
    )
    scratch = np.empty(total.shape if narrow_sums else 0, np.uint32)
    blocks = itertools.product(np.ndindex(batch, *sizes[:-2]), range(0, sizes[-2], step))
    for ((image, *place), first), group in itertools.product(blocks, range(groups)):
        rows = min(step, sizes[-2] - first)
        count = (rows - 1) * line + sizes[-1]
        total[:] = 0
        for tap in np.ndindex(*window.kernel):
            *above, y, column = (at * apart for at, apart in zip(tap, window.dilation, strict=True))
            places = zip(place, window.stride, above, strict=False)
            plane = planes[(image, *(at * stride + offset for at, stride, offset in places))]
            start = (first + y) * line + column
            seen, factors = plane[start : start + count, group], matrices[(*tap, group)]
            for depth in depths:
                np.matmul(seen[:, depth], factors[depth], product[:count])
                total[:count] += product[:count]
                if narrow_sums:
                    round_in_place(total[:count], scratch[:count])
        whole = total[: rows * line].reshape(rows, line, outputs)
        result[(image, *place, slice(first, first + rows))][:, :, group] = whole[:, : sizes[-1]]


def _add_row_by_row(
    result: numpy.ndarray,
    x: numpy.ndarray,
    weight: numpy.ndarray,
    window: Window,
    narrow_sums: bool,
) -> None:
    """Adds one matmul per kernel row and group on unrolled windows.

    (windows, kernel width * Ci/groups) times (kernel width * Ci/groups, Co/groups).
    """
    batch, *sizes, groups, outputs = result.shape
    width, rank, last = weight.shape[1], len(window.kernel), window.kernel[-1]
    # (kernel rows..., groups, kernel width * Ci/groups, Co/groups)
    grouped = weight.reshape(groups, outputs, width, *window.kernel)
    grouped = np.transpose(grouped, (*range(3, 2 + rank), 0, 2 + rank, 2, 1))
    matrices = grouped.reshape(*window.kernel[:-1], groups, last * width, outputs)
    step = max(1, _COLUMNS // (prod(sizes[1:]) * last * groups * width))
    for index, first in itertools.product(range(batch), range(0, sizes[0], step)):
        image = x[index : index + 1, first * window.stride[0] :]
        block = [min(step, sizes[0] - first), *sizes[1:]]
        for row in np.ndindex(*window.kernel[:-1]):
            columns = [taps(image, window, block, (*row, tap)) for tap in range(last)]
            rows = np.stack(columns, axis=-2).reshape(prod(block), last, groups, width)
            rows = np.moveaxis(rows, 2, 0).reshape(groups, prod(block), last * width)
            part = result[index, first : first + block[0]]
            if narrow_sums:
                _add_narrow(part, rows, matrices[row])
            else:
                part += np.moveaxis(rows @ matrices[row], 0, 1).reshape(part.shape)


def _add_narrow(part: numpy.ndarray, rows: numpy.ndarray, matrices: numpy.ndarray) -> None:
    """Adds matmuls of groups to sums (..., groups, outputs), rounded after each tile."""
    if matrices.shape[-1] == 1 and matrices.shape[-2] <= TILE_SIDE:
        # Depthwise: one product for all groups.
        part += np.moveaxis(rows @ matrices, 0, 1).reshape(part.shape)
        part[...] = rounded_sums(part)
        return
    for group, (left, right) in enumerate(zip(rows, matrices, strict=True)):
        total = np.ascontiguousarray(part[..., group, :]).reshape(left.shape[0], -1)
        add_product(total, left, right, True)
        part[..., group, :] = total.reshape(part[..., group, :].shape)


def transposed_convolution(
    x: numpy.ndarray,
    weight: numpy.ndarray,
    window: Window,
    output_padding: Sequence[int],
    groups: int,
    arithmetic: Arithmetic | None = None,
) -> numpy.ndarray:
    """Transposed cross-correlation of (N, H, W, Ci) with a weight (Ci, Co/groups, kernel...).

    The result may be memoized: it must not be modified.
    """
    products = x.size // max(x.shape[-1], 1) * weight.size
    extra = tuple(output_padding)
    x, weight = first_factor(x, arithmetic), second_factor(weight, arithmetic)
    return _MEMORY.result(products, _transposed_convolution, x, weight, window, extra, groups)


def _transposed_convolution(
    x: numpy.ndarray,
    weight: numpy.ndarray,
    window: Window,
    output_padding: tuple[int, ...],
    groups: int,
) -> numpy.ndarray:
    """Scatters each image element times the kernel to the output, then crops the padding."""
    x, weight = as_factor(x), as_factor(weight)
    n, *positions, channels = x.shape
    full = [
        (size - 1) * window.stride[axis] + window.reach(axis) + output_padding[axis]
        for axis, size in enumerate(positions)
    ]
    width = channels // groups
    outputs = weight.shape[1]
    result = np.zeros((n, *full, groups, outputs), dtype=x.dtype)
    rows = np.moveaxis(x.reshape(-1, groups, width), 1, 0)
    matrices = weight.reshape(groups, width, outputs, *window.kernel)
    for tap in np.ndindex(*window.kernel):
        product = np.moveaxis(rows @ matrices[(..., *tap)], 0, 1)
        taps(result, window, positions, tap)[...] += product.reshape(n, *positions, groups, outputs)
    cropped = [
        slice(before, size - after)
        for (before, after), size in zip(window.padding, full, strict=True)
    ]
    result = result[(slice(None), *cropped)]
    return result.reshape(*result.shape[:-2], groups * outputs)
