"""Operations that move elements, and look them up."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, shape_of, tensor_type
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.source_ops import SourceOp
from ttcodegen.frontends.tosa.operands import integer, integers, number, scalar
from ttcodegen.frontends.translation import Translator


def reshape(build: Translator, op: SourceOp) -> SSAValue:
    """The shape comes from the result; the operand or attribute says the same."""
    return build.reshape(op.operands[0], op.result_shape)


def transpose(build: Translator, op: SourceOp) -> SSAValue:
    """Dimension i of the result is dimension perms[i] of the operand."""
    return build.permute(op.operands[0], integers(op, 1, "perms"))


def reverse(build: Translator, op: SourceOp) -> SSAValue:
    """The elements of one dimension in the opposite order."""
    return build.like("reverse", op.operands[0], dimensions=[integer(op, "axis")])


def concat(build: Translator, op: SourceOp) -> SSAValue:
    """The operands one after the other along a dimension."""
    axis = integer(op, "axis")
    return build.concat(list(op.operands), axis % len(op.result_shape))


def slice_(build: Translator, op: SourceOp) -> SSAValue:
    """`size` elements from `start` on."""
    begins, sizes = integers(op, 1, "start"), integers(op, 2, "size")
    shape = shape_of(op.operands[0].type)
    ends = [
        whole if size == -1 else begin + size
        for begin, size, whole in zip(begins, sizes, shape, strict=True)
    ]
    return build.slice(op.operands[0], begins, ends)


def tile(build: Translator, op: SourceOp) -> SSAValue:
    """Each dimension as often as the attribute says."""
    return build.repeat(op.operands[0], op.result_shape)


def pad(build: Translator, op: SourceOp) -> SSAValue:
    """Widths before and after each dimension alternate."""
    widths = integers(op, 1, "padding")
    pairs = list(zip(widths[0::2], widths[1::2], strict=True))
    fill: float = 0
    if len(op.operands) > 2:
        fill = scalar(op, op.operands[2], "what it pads with")
    elif (given := number(op.given("pad_const"))) is not None:
        fill = given
    return build.pad(op.operands[0], pairs, fill)


def gather(build: Translator, op: SourceOp) -> SSAValue:
    """Rows of (N, K, C) by indices (N, W)."""
    values, indices = op.operands
    batch, rows, channels = shape_of(values.type)
    if batch == 1:
        return build.emit(
            "embedding", [indices, build.reshape(values, [rows, channels])], op.result_type
        )
    index = _each_channel(build, indices, channels)
    return build.emit("gather", [values, index], op.result_type, dim=1)


def scatter(build: Translator, op: SourceOp) -> SSAValue:
    """Rows (N, W, C) go to the indices of (N, K, C) that indices (N, W) name."""
    values, indices, rows = op.operands
    index = _each_channel(build, indices, shape_of(values.type)[2])
    return build.emit("scatter", [values, index, rows], op.result_type, dim=1)


def _each_channel(build: Translator, indices: SSAValue, channels: int) -> SSAValue:
    batch, count = shape_of(indices.type)
    index = build.reshape(indices, [batch, count, 1])
    return build.repeat(index, [batch, count, channels])


def table(build: Translator, op: SourceOp) -> SSAValue:
    """Each integer of 8 bits is replaced by what a table of 256 has for it."""
    value, entries = op.operands[0], _table_entries(op)
    shape = shape_of(value.type)
    index = build.typecast(value, i32)
    index = build.like("add", index, build.number(128, index))
    flat = build.reshape(index, [1, int(np.prod(shape, dtype=np.int64))])
    weight = build.typecast(build.reshape(entries, [256, 1]), f32)
    found = build.emit("embedding", [flat, weight], tensor_type(f32, [*shape_of(flat.type), 1]))
    return build.typecast(build.reshape(found, shape), op.result_element)


def _table_entries(op: SourceOp) -> SSAValue:
    if len(op.operands) < 2:
        raise CompileError(f"{op.name}: the table has to be an operand")
    if shape_of(op.operands[1].type) != (256,):
        raise CompileError(f"{op.name} is supported for integers of 8 bits only")
    return op.operands[1]


def resize(build: Translator, op: SourceOp) -> SSAValue:
    """Both directions of an image are products with a matrix that says how much of which row (or
    column) each row of the result has."""
    value = op.operands[0]
    scale, offset = integers(op, 1, "scale"), integers(op, 2, "offset")
    mode = str(op.given("mode"))
    nearest = "NEAREST" in mode
    if not nearest and "BILINEAR" not in mode:
        raise CompileError(f"{op.name}: expected the mode NEAREST_NEIGHBOR or BILINEAR")
    batch, height, width, channels = shape_of(value.type)
    _, rows, columns, _ = op.result_shape
    vertical = _weights(rows, height, scale[0], scale[1], offset[0], nearest)
    horizontal = _weights(columns, width, scale[2], scale[3], offset[1], nearest)
    factors = [_repetition(vertical), _repetition(horizontal)]
    if None not in factors:
        return build.emit(
            "upsample2d", [value], op.result_type, scale_factor=factors, mode="nearest"
        )
    element = element_of(value.type)
    image = build.permute(value, [0, 3, 1, 2])
    if element.name == "integer_type":
        image = build.typecast(image, f32)
    if element.name == "integer_type" and not nearest:
        # Of integers the result counts in fractions.
        vertical, horizontal = vertical * scale[0], horizontal * scale[2]
    kept = element_of(image.type)
    lhs = build.repeat(build.constant(vertical[None, None], kept), [batch, channels, rows, height])
    rhs = build.repeat(
        build.constant(horizontal.T[None, None], kept), [batch, channels, width, columns]
    )
    resized = build.matmul(build.matmul(lhs, image), rhs)
    return build.typecast(build.permute(resized, [0, 2, 3, 1]), op.result_element)


def _repetition(weights: np.ndarray) -> int | None:
    """Repetition count of each element, or None for other weights."""
    count, size = weights.shape
    if count % size or not np.array_equal(weights, np.repeat(np.eye(size), count // size, axis=0)):
        return None
    return count // size


def _weights(
    count: int, size: int, numerator: int, denominator: int, offset: int, nearest: bool
) -> np.ndarray:
    """Interpolation matrix of a dimension (TOSA 1.0, RESIZE)."""
    position = np.arange(count) * denominator + offset
    lower = np.floor_divide(position, numerator)
    fraction = (position - lower * numerator) / numerator
    weights = np.zeros((count, size), dtype=np.float32)
    every = np.arange(count)
    if nearest:
        chosen = np.clip(np.where(2 * fraction >= 1, lower + 1, lower), 0, size - 1)
        weights[every, chosen] = 1
        return weights
    np.add.at(weights, (every, np.clip(lower, 0, size - 1)), 1 - fraction)
    np.add.at(weights, (every, np.clip(lower + 1, 0, size - 1)), fraction)
    return weights
