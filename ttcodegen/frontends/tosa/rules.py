"""Translation rules of TOSA 1.0, data movement included."""

from __future__ import annotations

from math import inf, nan

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import (
    element_of,
    f32,
    i1,
    is_boolean,
    shape_of,
    tensor_type,
)
from ttcodegen.dialects.operations.attribute_kinds import CONSTANT
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.special_functions import extreme_of_numbers, number_or, truncated
from ttcodegen.frontends.tosa import windows
from ttcodegen.frontends.tosa.windows import flag, integer, integers, number, scalar, zero_point
from ttcodegen.frontends.translation import DECOMPOSED, Rule, SourceOp, Translator

# Operations that move elements, and look them up.


def reshape(build: Translator, op: SourceOp) -> SSAValue:
    """Reshape to the result's shape, which the operand or attribute repeats."""
    return build.reshape(op.operands[0], op.result_shape)


def transpose(build: Translator, op: SourceOp) -> SSAValue:
    """Transpose: dimension i of the result is dimension perms[i] of the operand."""
    return build.permute(op.operands[0], integers(op, 1, "perms"))


def reverse(build: Translator, op: SourceOp) -> SSAValue:
    """Reverses one dimension."""
    return build.like("reverse", op.operands[0], dimensions=[integer(op, "axis")])


def concat(build: Translator, op: SourceOp) -> SSAValue:
    """Concatenation along a dimension."""
    axis = integer(op, "axis")
    return build.concat(list(op.operands), axis % len(op.result_shape))


def slice_(build: Translator, op: SourceOp) -> SSAValue:
    """Slice of `size` elements from `start`."""
    begins, sizes = integers(op, 1, "start"), integers(op, 2, "size")
    shape = shape_of(op.operands[0].type)
    ends = [
        whole if size == -1 else begin + size
        for begin, size, whole in zip(begins, sizes, shape, strict=True)
    ]
    return build.slice(op.operands[0], begins, ends)


def tile(build: Translator, op: SourceOp) -> SSAValue:
    """Tiling to the result's shape."""
    return build.repeat(op.operands[0], op.result_shape)


def pad(build: Translator, op: SourceOp) -> SSAValue:
    """Padding; widths alternate between before and after each dimension."""
    widths = integers(op, 1, "padding")
    pairs = list(zip(widths[0::2], widths[1::2], strict=True))
    fill: float = 0
    if len(op.operands) > 2:
        fill = scalar(op, op.operands[2], "what it pads with")
    elif (given := number(op.given("pad_const"))) is not None:
        fill = given
    return build.pad(op.operands[0], pairs, fill)


def gather(build: Translator, op: SourceOp) -> SSAValue:
    """Gather of rows of (N, K, C) by indices (N, W)."""
    values, indices = op.operands
    batch, rows, channels = shape_of(values.type)
    if batch == 1:
        return build.emit(
            "embedding", [indices, build.reshape(values, [rows, channels])], op.result_type
        )
    index = _each_channel(build, indices, channels)
    return build.emit("gather", [values, index], op.result_type, dim=1)


def scatter(build: Translator, op: SourceOp) -> SSAValue:
    """Scatter of rows (N, W, C) into (N, K, C) at indices (N, W)."""
    values, indices, rows = op.operands
    index = _each_channel(build, indices, shape_of(values.type)[2])
    return build.emit("scatter", [values, index, rows], op.result_type, dim=1)


def _each_channel(build: Translator, indices: SSAValue, channels: int) -> SSAValue:
    batch, count = shape_of(indices.type)
    index = build.reshape(indices, [batch, count, 1])
    return build.repeat(index, [batch, count, channels])


def table(build: Translator, op: SourceOp) -> SSAValue:
    """Lookup of int8 elements in a table of 256 entries."""
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
    """Resize by one interpolation matrix per direction."""
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
        # Integer results are scaled by the fractions' denominator.
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


# The rules by the names of operations, and those that are one op or a few (TOSA 1.0).

_LARGEST = float(np.finfo(np.float32).max)


def _as_op(name: str) -> Rule:
    """Makes the rule of an operation with a TTIR op of the same operands."""

    def rule(build: Translator, op: SourceOp) -> SSAValue:
        return build.emit(name, [build.aligned(v, op.result_shape) for v in op.operands],
                          op.result_type)  # fmt: skip

    return rule


def _extreme(name: str) -> Rule:
    def rule(build: Translator, op: SourceOp) -> SSAValue:
        lhs, rhs = (build.aligned(value, op.result_shape) for value in op.operands)
        if windows.ignores_nan(op):
            return extreme_of_numbers(build, name, lhs, rhs)
        return build.emit(name, [lhs, rhs], op.result_type)

    return rule


def _reduction(name: str) -> Rule:
    def rule(build: Translator, op: SourceOp) -> SSAValue:
        value, axis = op.operands[0], integer(op, "axis")
        if not windows.ignores_nan(op):
            return build.emit(name, [value], op.result_type, dim_arg=[axis], keep_dim=True)
        # What is NaN does not count, unless nothing else is there.
        numbers = number_or(build, value, inf if name == "min" else -inf)
        found = build.emit(name, [numbers], op.result_type, dim_arg=[axis], keep_dim=True)
        is_none = build.reduce("reduce_and", build.like("isnan", value, element=i1), [axis])
        none = build.full(op.result_shape, nan, op.result_element)
        return build.emit("where", [is_none, none, found], op.result_type)

    return rule


def _argmax(build: Translator, op: SourceOp) -> SSAValue:
    value = op.operands[0]
    if windows.ignores_nan(op):
        value = number_or(build, value, -inf)
    return build.emit(
        "argmax", [value], op.result_type, dim_arg=[integer(op, "axis")], keep_dim=False
    )


def _clamp(build: Translator, op: SourceOp) -> SSAValue:
    low = number(op.given("min_val", "min_fp" if _is_float(op) else "min_int"))
    high = number(op.given("max_val", "max_fp" if _is_float(op) else "max_int"))
    if low is None or high is None:
        raise CompileError(f"{op.name} needs the attributes 'min_val' and 'max_val'")
    if not low <= high:
        raise CompileError(f"{op.name}: min_val {low} is not at most max_val {high}")
    value = op.operands[0]
    if windows.ignores_nan(op):
        value = number_or(build, value, low)
    if _is_float(op):
        if low == 0 and high >= _LARGEST:
            return build.like("relu", value)
        if low == 0 and high == 6:
            return build.like("relu6", value)
    return build.like("clamp_scalar", value, min=low, max=high)


def _is_float(op: SourceOp) -> bool:
    return element_of(op.operands[0].type).name not in ("integer_type", "index")


def _mul(build: Translator, op: SourceOp) -> SSAValue:
    if len(op.operands) > 2:
        shift = scalar(op, op.operands[2], "the shift")
    else:
        shift = number(op.given("shift")) or 0
    lhs, rhs = (build.aligned(value, op.result_shape) for value in op.operands[:2])
    lhs, rhs = (build.typecast(value, op.result_element) for value in (lhs, rhs))
    if shift == 0:
        return build.emit("multiply", [lhs, rhs], op.result_type)
    # The product is rounded: half of what is shifted out is added before.
    return windows.shifted(build, build.broadcasting("multiply", lhs, rhs), int(shift))


def _negate(build: Translator, op: SourceOp) -> SSAValue:
    offset = zero_point(op, 1) + zero_point(op, 2)
    value = op.operands[0]
    if offset == 0:
        return build.like("neg", value)
    return build.like("subtract", build.full(op.result_shape, offset, op.result_element), value)


def _right_shift(build: Translator, op: SourceOp) -> SSAValue:
    """Arithmetic right shift; with rounding, the last bit shifted out is added."""
    lhs, rhs = (build.aligned(value, op.result_shape) for value in op.operands)
    found = build.emit("right_shift", [lhs, rhs], op.result_type)
    if not flag(op, "round"):
        return found
    one, none = build.number(1, rhs), build.number(0, rhs)
    before = build.like("subtract", build.like("maximum", rhs, one), one)
    last = build.like("bitwise_and", build.emit("right_shift", [lhs, before], op.result_type), one)
    moved = build.compare("gt", rhs, none, i1)
    last = build.emit("where", [moved, last, build.full(op.result_shape, 0, op.result_element)],
                      op.result_type)  # fmt: skip
    return build.like("add", found, last)


def _integer_division(build: Translator, op: SourceOp) -> SSAValue:
    """Integer division, rounded towards zero."""
    lhs, rhs = (build.aligned(value, op.result_shape) for value in op.operands[:2])
    return build.typecast(truncated(build, lhs, rhs), op.result_element)


def _constant(build: Translator, op: SourceOp) -> SSAValue:
    value = op.given("values", "value")
    if value is None:
        raise CompileError(f"{op.name} needs the attribute 'values'")
    return build.emit("constant", [], op.result_type, value=CONSTANT.decode(value))


def _cast(build: Translator, op: SourceOp) -> SSAValue:
    value = op.operands[0]
    if _is_float(op) and op.result_element.name == "integer_type":
        if is_boolean(op.result_element):
            zero = build.number(0, value)
            return build.compare("ne", value, zero, op.result_element)
        value = build.rounded(value)
    return build.typecast(value, op.result_element)


def _matmul(build: Translator, op: SourceOp) -> SSAValue:
    a, b = (windows.centred(build, op, index, index + 2) for index in (0, 1))
    return build.typecast(build.matmul(a, b), op.result_element)


def _fully_connected(build: Translator, op: SourceOp) -> SSAValue:
    if windows.is_integer(op.operands[0]):
        raise CompileError(
            f"{op.name} of integers is not supported",
            remedy="export the model with a newer version of TOSA, which has tosa.conv2d instead",
        )
    return build.emit("linear", list(op.operands[:3]), op.result_type, transpose_b=True)


def _identity(build: Translator, op: SourceOp) -> list[SSAValue]:
    return list(op.operands[: len(op.results)])


def _greater_or_equal(name: str) -> Rule:
    def rule(build: Translator, op: SourceOp) -> SSAValue:
        lhs, rhs = (build.aligned(value, op.result_shape) for value in op.operands)
        return build.compare(name, lhs, rhs, op.result_element)

    return rule


def _read_by_users(build: Translator, op: SourceOp) -> None:
    """Translates nothing: users read the operation itself."""


def _refused(reason: str) -> Rule:
    def rule(build: Translator, op: SourceOp) -> None:
        raise CompileError(f"'{op.name}' is not supported: {reason}")

    return rule


def _custom(build: Translator, op: SourceOp) -> None:
    name = getattr(op.given("operator_name", "identifier"), "data", "?")
    raise CompileError(
        f"'{op.name}' is not supported: it is not known what '{name}' computes",
        remedy=DECOMPOSED,
    )


_DIRECT = {
    "abs": "abs",
    "add": "add",
    "bitwise_and": "bitwise_and",
    "bitwise_not": "bitwise_not",
    "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor",
    "ceil": "ceil",
    "cos": "cos",
    "erf": "erf",
    "exp": "exp",
    "floor": "floor",
    "log": "log",
    "logical_and": "logical_and",
    "logical_left_shift": "logical_left_shift",
    "logical_not": "logical_not",
    "logical_or": "logical_or",
    "logical_right_shift": "logical_right_shift",
    "logical_xor": "logical_xor",
    "pow": "pow",
    "reciprocal": "reciprocal",
    "rsqrt": "rsqrt",
    "select": "where",
    "sigmoid": "sigmoid",
    "sin": "sin",
    "sub": "subtract",
    "tanh": "tanh",
}
"""Operations with a TTIR op of the same operands."""

_REDUCTIONS = {
    "reduce_all": "reduce_and",
    "reduce_any": "reduce_or",
    "reduce_max": "max",
    "reduce_min": "min",
    "reduce_prod": "prod",
    "reduce_product": "prod",
    "reduce_sum": "sum",
}

_FLOW = "its branches are chosen while the program runs"
_STATE = "a function keeps nothing from one call to the next"
_TRANSFORM = "there is no Fourier transform in the library"

_TABLE: dict[str, Rule] = {
    **{name: _as_op(ttir) for name, ttir in _DIRECT.items()},
    **{name: _reduction(ttir) for name, ttir in _REDUCTIONS.items()},
    "argmax": _argmax,
    "arithmetic_right_shift": _right_shift,
    "avg_pool2d": windows.avg_pool2d,
    "cast": _cast,
    "clamp": _clamp,
    "concat": concat,
    "const": _constant,
    "const_shape": _read_by_users,
    "conv2d": windows.conv2d,
    "conv3d": windows.conv3d,
    "custom": _custom,
    "depthwise_conv2d": windows.depthwise_conv2d,
    "div": _integer_division,
    "equal": _greater_or_equal("eq"),
    "fully_connected": _fully_connected,
    "gather": gather,
    "greater": _greater_or_equal("gt"),
    "greater_equal": _greater_or_equal("ge"),
    "identity": _identity,
    "int_div": _integer_division,
    "intdiv": _integer_division,
    "matmul": _matmul,
    "max_pool2d": windows.max_pool2d,
    "maximum": _extreme("maximum"),
    "minimum": _extreme("minimum"),
    "mul": _mul,
    "negate": _negate,
    "pad": pad,
    "rescale": windows.rescale,
    "reshape": reshape,
    "resize": resize,
    "reverse": reverse,
    "scatter": scatter,
    "slice": slice_,
    "table": table,
    "tile": tile,
    "transpose": transpose,
    "transpose_conv2d": windows.transpose_conv2d,
    "apply_scale": _refused("it is a part of integer arithmetic of 48 bits"),
    "clz": _refused("there is no op in the library that counts zeros"),
    "cond_if": _refused(_FLOW),
    "fft2d": _refused(_TRANSFORM),
    "rfft2d": _refused(_TRANSFORM),
    "variable": _refused(_STATE),
    "variable_read": _refused(_STATE),
    "variable_write": _refused(_STATE),
    "while_loop": _refused(_FLOW),
}

RULES: dict[str, Rule] = {f"tosa.{name}": rule for name, rule in _TABLE.items()}
"""Translation rules of TOSA operations, by name."""
