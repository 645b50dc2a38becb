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
    """Returns whether the op computes each element from those at the same index, with broadcasting.

    Conversions of the element type are not included.
    """
    return op.definition.verify is verify_broadcast and len(op.results) == 1


def number(value: float, element: Attribute) -> float | int:
    """Converts a fill value to the element type's kind: float or integer."""
    data_type = normalized_data_type(element)
    return float(value) if data_type is not None and data_type.is_float else int(value)


def full_like(rewriter: Rewriter, op: CatalogueOp, value: float) -> SSAValue:
    """Returns a splat that can replace the result of the op."""
    element = op.result_type.element_type
    return rewriter.full(op.result_shape, number(value, element), element)


def is_float(value: SSAValue) -> bool:
    """Returns whether the elements are floats."""
    data_type = normalized_data_type(element_of(value.type))
    return data_type is not None and data_type.is_float


_WITHOUT_SIGN = frozenset(
    f"ttir.{name}" for name in ("abs", "square", "exp", "exp2", "sigmoid", "softmax", "erfc")
)
"""Ops whose results are never negative nor -0.0."""
_KEEP_NO_SIGN = frozenset(
    f"ttir.{name}"
    for name in (
        *("add", "multiply", "div", "maximum", "minimum", "sqrt", "rsqrt", "reciprocal", "relu"),
        *("sum", "mean", "max", "min", "prod", "typecast", "cumsum", "concat"),
        *("reshape", "permute", "broadcast", "repeat", "repeat_interleave", "slice_static"),
    )
)
"""Ops whose results are not negative nor -0.0 if no operand is."""
_SIGN_OPS = 16


def has_no_sign(value: SSAValue) -> bool:
    """Returns whether no element of `value` is negative or -0.0; looks at few producers."""
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
    """Returns `value` before conversions between floats, which only round it."""
    while (producer := rewriter.defining(value, "ttir.typecast")) is not None:
        if not is_float(producer.operands[0]):
            break
        value = producer.operands[0]
    return value


def close(number: float, expected: float, like: SSAValue) -> bool:
    """Returns whether a number equals the expected one within the precision of `like`."""
    tolerance = (
        2.0**-7 if normalized_data_type(element_of(like.type)) is DataType.BFLOAT16 else 1e-5
    )
    return abs(number - expected) <= tolerance * abs(expected)


def is_same(first: float, second: float) -> bool:
    """Returns whether two numbers are equal, including the sign of zeros."""
    return first == second and copysign(1.0, first) == copysign(1.0, second)


def with_splat(op: CatalogueOp) -> tuple[SSAValue, float | int] | None:
    """Matches a commutative op with a splat operand; returns the other operand and the number."""
    lhs, rhs = op.operands
    if (splat := splat_of(rhs)) is not None:
        return lhs, splat
    if (splat := splat_of(lhs)) is not None:
        return rhs, splat
    return None


def is_weight(value: SSAValue) -> bool:
    """Returns whether `value` depends on constants and weights alone.

    It can then be computed before the program runs. Conservatively False for values of many ops.
    """
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
    """Returns whether `value` has the type of the op's result."""
    if value.type is op.results[0].type:
        return True
    return shape_of(value.type) == op.result_shape and (
        element_of(value.type) == op.result_type.element_type
    )
