"""Row statistics: means, variances and deviations of the rows of a value.

Frontends decompose them in many ways: with or without the reduced dimension, in a wider type, the
variance as mean square of the centred rows or as mean square less squared mean. Rows are along the
last dimension. A statistic has one element per row, in order, so that an op on two of them whose
result has as many elements does not broadcast.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.ops.reduction.reduce import reduced_dims
from ttcodegen.transforms.rewriting import Rewriter
from ttcodegen.transforms.ttir.arithmetic_rules import is_lossless
from ttcodegen.transforms.ttir.queries import is_float, same_type, unconverted, with_splat


@dataclass(frozen=True)
class Normalized:
    """A tensor divided by the deviation of its rows."""

    source: SSAValue
    is_centered: bool
    """True if the mean of each row is subtracted first."""
    epsilon: float


def normalized(
    rewriter: Rewriter, value: SSAValue, factor: SSAValue, divides: bool
) -> Normalized | None:
    """Matches `value` normalized by the deviation of its rows."""
    shape = shape_of(value.type)
    kept = (*shape[:-1], 1)
    found = shape_of(factor.type)
    if not shape or shape[-1] == 0 or (1,) * (len(kept) - len(found)) + found != kept:
        return None
    variance = _under_root(rewriter, factor, divides)
    if variance is None:
        return None
    second_moment, epsilon = variance
    if _is_mean_square(rewriter, second_moment, value):
        centered = _centered_source(rewriter, value)
        # The mean square of centred rows is their variance.
        return Normalized(value if centered is None else centered, centered is not None, epsilon)
    centered = _centered_source(rewriter, value)
    if centered is None or not _is_variance(rewriter, second_moment, centered):
        return None
    return Normalized(centered, True, epsilon)


def _under_root(
    rewriter: Rewriter, factor: SSAValue, divides: bool
) -> tuple[SSAValue, float] | None:
    """Matches 1 / sqrt(v + epsilon), or sqrt(v + epsilon) if it divides; returns v and epsilon."""
    value = statistic(rewriter, factor)
    root = rewriter.defining(value, "ttir.sqrt" if divides else "ttir.rsqrt")
    if root is None and not divides:
        inverse = rewriter.defining(value, "ttir.reciprocal", "ttir.div")
        if inverse is None or (inverse.name == "ttir.div" and splat_of(inverse.operands[0]) != 1):
            return None
        root = rewriter.defining(statistic(rewriter, inverse.operands[-1]), "ttir.sqrt")
    if root is None or not factor.has_one_use():
        return None
    total = rewriter.defining(statistic(rewriter, root.operands[0]), "ttir.add")
    found = None if total is None else with_splat(total)
    if total is None or found is None or not 0 < found[1] < 1:
        return None
    if prod(total.result_shape) != prod(shape_of(found[0].type)):
        return None
    return found[0], float(found[1])


def statistic(rewriter: Rewriter, value: SSAValue) -> SSAValue:
    """Returns `value` before float conversions and reshapes that add or drop dimensions of size
    1."""
    while True:
        value = unconverted(rewriter, value)
        producer = rewriter.defining(value, "ttir.reshape")
        if producer is None:
            return value
        source = producer.operands[0]
        if _sizes(source) != _sizes(value):
            return value
        value = source


def _sizes(value: SSAValue) -> list[int]:
    return [size for size in shape_of(value.type) if size != 1]


def is_same_tensor(rewriter: Rewriter, first: SSAValue, second: SSAValue) -> bool:
    """Returns whether two tensors are equal up to lossless conversions."""
    return _exact(rewriter, first) is _exact(rewriter, second)


def _exact(rewriter: Rewriter, value: SSAValue) -> SSAValue:
    """Returns `value` before lossless conversions."""
    while (producer := rewriter.defining(value, "ttir.typecast")) is not None:
        source = producer.operands[0]
        if not is_float(source) or not is_lossless(element_of(source.type), element_of(value.type)):
            break
        value = source
    return value


def _averaged(rewriter: Rewriter, value: SSAValue) -> SSAValue | None:
    """Returns the value whose row-wise mean `value` is, or None."""
    mean = rewriter.defining(statistic(rewriter, value), "ttir.mean")
    if mean is None:
        return None
    source = mean.operands[0]
    return source if reduced_dims(mean) == [len(shape_of(source.type)) - 1] else None


def _squared(rewriter: Rewriter, value: SSAValue) -> SSAValue | None:
    """Returns the value whose square `value` is, or None."""
    square = rewriter.defining(unconverted(rewriter, value), "ttir.multiply", "ttir.square")
    if square is None or square.operands[0] is not square.operands[-1]:
        return None
    return square.operands[0]


def _mean_square(rewriter: Rewriter, value: SSAValue) -> SSAValue | None:
    """Returns the value whose mean square `value` is, or None.

    The squares must have no other use.
    """
    averaged = _averaged(rewriter, value)
    if averaged is None or not averaged.has_one_use():
        return None
    if not statistic(rewriter, value).has_one_use():
        return None
    return _squared(rewriter, averaged)


def _is_mean_square(rewriter: Rewriter, value: SSAValue, of: SSAValue) -> bool:
    squared = _mean_square(rewriter, value)
    return squared is not None and is_same_tensor(rewriter, squared, of)


def _is_mean(rewriter: Rewriter, value: SSAValue, of: SSAValue) -> bool:
    averaged = _averaged(rewriter, value)
    return averaged is not None and is_same_tensor(rewriter, averaged, of)


def _centered_source(rewriter: Rewriter, value: SSAValue) -> SSAValue | None:
    """Matches x less its mean over the last dimension; returns x or None."""
    producer = rewriter.defining(unconverted(rewriter, value), "ttir.subtract")
    if producer is None:
        return None
    source, mean = producer.operands
    shape = shape_of(source.type)
    found = shape_of(mean.type)
    if not same_type(source, producer) or not shape:
        return None
    if (1,) * (len(shape) - len(found)) + found != (*shape[:-1], 1):
        return None
    return source if _is_mean(rewriter, mean, source) else None


def _is_variance(rewriter: Rewriter, value: SSAValue, of: SSAValue) -> bool:
    """Matches the mean square of the centred rows, or mean square less squared mean, maybe clamped
    at 0."""
    squared = _mean_square(rewriter, value)
    if squared is not None:
        source = _centered_source(rewriter, squared)
        return source is not None and is_same_tensor(rewriter, source, of)
    producer = rewriter.defining(statistic(rewriter, value), "ttir.relu", "ttir.subtract")
    if producer is not None and producer.name == "ttir.relu":
        value = statistic(rewriter, producer.operands[0])
        producer = rewriter.defining(value, "ttir.subtract")
    return producer is not None and _is_difference(rewriter, producer, of)


def _is_difference(rewriter: Rewriter, op: CatalogueOp, of: SSAValue) -> bool:
    first, second = op.operands
    if prod(op.result_shape) != prod(shape_of(of.type)[:-1]):
        return False
    mean = _squared(rewriter, statistic(rewriter, second))
    return (
        mean is not None and _is_mean_square(rewriter, first, of) and _is_mean(rewriter, mean, of)
    )
