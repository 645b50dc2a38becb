"""The rules by the names of operations, and those that are one op or a few (TOSA 1.0)."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, is_boolean
from ttcodegen.dialects.operations.attribute_kinds import CONSTANT
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.integer_division import truncated
from ttcodegen.frontends.source_ops import SourceOp
from ttcodegen.frontends.tosa import movement, quantized, windows
from ttcodegen.frontends.tosa.operands import flag, integer, number, scalar, zero_point
from ttcodegen.frontends.translation import DECOMPOSED, Rule, Translator

_LARGEST = float(np.finfo(np.float32).max)


def _same(name: str) -> Rule:
    """One op with the same operands."""

    def rule(build: Translator, op: SourceOp) -> SSAValue:
        return build.emit(name, [build.aligned(v, op.result_shape) for v in op.operands],
                          op.result_type)  # fmt: skip

    return rule


def _reduction(name: str) -> Rule:
    def rule(build: Translator, op: SourceOp) -> SSAValue:
        return build.emit(
            name,
            [op.operands[0]],
            op.result_type,
            dim_arg=[integer(op, "axis")],
            keep_dim=True,
        )

    return rule


def _argmax(build: Translator, op: SourceOp) -> SSAValue:
    return build.emit(
        "argmax", [op.operands[0]], op.result_type, dim_arg=[integer(op, "axis")], keep_dim=False
    )


def _clamp(build: Translator, op: SourceOp) -> SSAValue:
    low = number(op.given("min_val", "min_fp" if _is_float(op) else "min_int"))
    high = number(op.given("max_val", "max_fp" if _is_float(op) else "max_int"))
    if low is None or high is None:
        raise CompileError(f"{op.name} needs the attributes 'min_val' and 'max_val'")
    value = op.operands[0]
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
    return quantized.shifted(build, build.broadcasting("multiply", lhs, rhs), int(shift))


def _negate(build: Translator, op: SourceOp) -> SSAValue:
    offset = zero_point(op, 1) + zero_point(op, 2)
    value = op.operands[0]
    if offset == 0:
        return build.like("neg", value)
    return build.like("subtract", build.full(op.result_shape, offset, op.result_element), value)


def _right_shift(build: Translator, op: SourceOp) -> SSAValue:
    if flag(op, "round"):
        raise CompileError(f"{op.name} with rounding is not supported")
    return _same("right_shift")(build, op)  # pyright: ignore[reportReturnType]


def _integer_division(build: Translator, op: SourceOp) -> SSAValue:
    """Cut off towards zero."""
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
    a, b = (quantized.centred(build, op, index, index + 2) for index in (0, 1))
    return build.typecast(build.matmul(a, b), op.result_element)


def _fully_connected(build: Translator, op: SourceOp) -> SSAValue:
    if quantized.is_integer(op.operands[0]):
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


def _is_read_by_others(build: Translator, op: SourceOp) -> None:
    """It is looked at by those that use it."""


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


_SAME = {
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
    "maximum": "maximum",
    "minimum": "minimum",
    "pow": "pow",
    "reciprocal": "reciprocal",
    "rsqrt": "rsqrt",
    "select": "where",
    "sigmoid": "sigmoid",
    "sin": "sin",
    "sub": "subtract",
    "tanh": "tanh",
}
"""Operations that TTIR has under this name."""

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
    **{name: _same(ttir) for name, ttir in _SAME.items()},
    **{name: _reduction(ttir) for name, ttir in _REDUCTIONS.items()},
    "argmax": _argmax,
    "arithmetic_right_shift": _right_shift,
    "avg_pool2d": windows.avg_pool2d,
    "cast": _cast,
    "clamp": _clamp,
    "concat": movement.concat,
    "const": _constant,
    "const_shape": _is_read_by_others,
    "conv2d": windows.conv2d,
    "conv3d": windows.conv3d,
    "custom": _custom,
    "depthwise_conv2d": windows.depthwise_conv2d,
    "div": _integer_division,
    "equal": _greater_or_equal("eq"),
    "fully_connected": _fully_connected,
    "gather": movement.gather,
    "greater": _greater_or_equal("gt"),
    "greater_equal": _greater_or_equal("ge"),
    "identity": _identity,
    "int_div": _integer_division,
    "intdiv": _integer_division,
    "matmul": _matmul,
    "max_pool2d": windows.max_pool2d,
    "mul": _mul,
    "negate": _negate,
    "pad": movement.pad,
    "rescale": quantized.rescale,
    "reshape": movement.reshape,
    "resize": movement.resize,
    "reverse": movement.reverse,
    "scatter": movement.scatter,
    "slice": movement.slice_,
    "table": movement.table,
    "tile": movement.tile,
    "transpose": movement.transpose,
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
