"""Queries on ops and values shared by the TTIR rewrite rules."""

from __future__ import annotations

from math import copysign

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, SSAValue

from ttcodegen.dialects.core.datatypes import DataType, element_of, normalized_data_type, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.dialect import ArgumentType
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.ops.elementwise.registration import verify_broadcast
from ttcodegen.transforms.rewriting import Rewriter, is_repeatable
from ttcodegen.transforms.ttnn.layout import argument_type

_WEIGHT_OPS = 64


def is_elementwise(op: CatalogueOp) -> bool:
    """True if the op computes each element of its result from those at the same index, with numpy's
    broadcasting; conversions of the element type are not counted."""
    return op.definition.verify is verify_broadcast and len(op.results) == 1


def number(value: float, element: Attribute) -> float | int:
    """A number as the fill value of a tensor: a float for floats, an integer for integers."""
    data_type = normalized_data_type(element)
    return float(value) if data_type is not None and data_type.is_float else int(value)


def full_like(rewriter: Rewriter, op: CatalogueOp, value: float) -> SSAValue:
    """A tensor of one number that can replace the result of the op."""
    element = op.result_type.element_type
    return rewriter.full(op.result_shape, number(value, element), element)


def is_float(value: SSAValue) -> bool:
    """True if the elements are floats."""
    data_type = normalized_data_type(element_of(value.type))
    return data_type is not None and data_type.is_float


_WITHOUT_SIGN = frozenset(
    f"ttir.{name}" for name in ("abs", "square", "exp", "exp2", "sigmoid", "softmax", "erfc")
)
"""Ops whose results are never below zero, nor -0.0."""
_KEEP_NO_SIGN = frozenset(
    f"ttir.{name}"
    for name in (
        *("add", "multiply", "div", "maximum", "minimum", "sqrt", "rsqrt", "reciprocal", "relu"),
        *("sum", "mean", "max", "min", "prod", "typecast", "cumsum", "concat"),
        *("reshape", "permute", "broadcast", "repeat", "repeat_interleave", "slice_static"),
    )
)
"""Ops whose results are not if no operand is."""
_SIGN_OPS = 16


def has_no_sign(value: SSAValue) -> bool:
    """True if no element of `value` is below zero or -0.0, as far as a few ops before it say."""
    pending = [value]
    for _ in range(_SIGN_OPS):
        if not pending:
            return True
        current = pending.pop()
        op, splat = current.owner, splat_of(current)
        if splat is not None:
            if copysign(1.0, splat) < 0 or splat != splat:
                return False
        elif not isinstance(op, CatalogueOp):
            return False
        elif op.name in _KEEP_NO_SIGN:
            is_square = op.name == "ttir.multiply" and op.operands[0] is op.operands[1]
            pending += () if is_square else op.operands
        elif op.name not in _WITHOUT_SIGN:
            return False
    return False


def unconverted(rewriter: Rewriter, value: SSAValue) -> SSAValue:
    """`value` before conversions between floats, which only round it."""
    while (producer := rewriter.defining(value, "ttir.typecast")) is not None:
        if not is_float(producer.operands[0]):
            break
        value = producer.operands[0]
    return value


def close(number: float, expected: float, like: SSAValue) -> bool:
    """True if the number is the expected one as closely as the elements of `like` can say it."""
    tolerance = (
        2.0**-7 if normalized_data_type(element_of(like.type)) is DataType.BFLOAT16 else 1e-5
    )
    return abs(number - expected) <= tolerance * abs(expected)


def is_same(first: float, second: float) -> bool:
    """True if two numbers are equal, zeros of the same sign."""
    return first == second and copysign(1.0, first) == copysign(1.0, second)


def with_splat(op: CatalogueOp) -> tuple[SSAValue, float | int] | None:
    """The operands of an op that commutes, if one of them is one number throughout: the other, and
    the number."""
    lhs, rhs = op.operands
    if (splat := splat_of(rhs)) is not None:
        return lhs, splat
    if (splat := splat_of(lhs)) is not None:
        return rhs, splat
    return None


def is_weight(value: SSAValue) -> bool:
    """True if `value` is made of constants and weights alone, so that it can be computed before the
    program runs. Gives up, with no, on values that many ops make."""
    pending = [value]
    for _ in range(_WEIGHT_OPS):
        if not pending:
            return True
        current = pending.pop()
        owner = current.owner
        if isinstance(owner, Block):
            if not _is_weight_argument(current, owner):
                return False
        elif isinstance(owner, CatalogueOp) and is_repeatable(owner):
            pending += owner.operands
        else:
            return False
    return False


def _is_weight_argument(value: SSAValue, block: Block) -> bool:
    function = block.parent_op()
    if not isinstance(value, BlockArgument) or not isinstance(function, FuncOp):
        return False
    kind = argument_type(function, value.index)
    return kind in (ArgumentType.PARAMETER, ArgumentType.CONSTANT)


def same_type(value: SSAValue, op: CatalogueOp) -> bool:
    """True if `value` has the type of the op's result."""
    if value.type is op.results[0].type:
        return True
    return shape_of(value.type) == op.result_shape and (
        element_of(value.type) == op.result_type.element_type
    )
