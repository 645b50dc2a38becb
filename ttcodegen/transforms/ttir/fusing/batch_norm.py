"""Rules that find batch norms with known statistics in what frameworks spell out."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.transforms.rewriting import PatternSet, Rewriter
from ttcodegen.transforms.ttir.queries import (
    is_float,
    is_weight,
    same_type,
    unconverted,
    with_splat,
)

BATCH_NORMS = PatternSet()


@dataclass
class _Factors:
    """Multiplier and divisor of a mean-centred tensor."""

    above: list[SSAValue] = field(default_factory=list[SSAValue])
    below: list[SSAValue] = field(default_factory=list[SSAValue])
    variance: SSAValue | None = None
    epsilon: float = 0.0

    def add(self, rewriter: Rewriter, value: SSAValue, *, under: bool) -> None:
        """Takes a factor apart, or a divisor if `under`, and notes 1 / sqrt(variance + epsilon)."""
        op = rewriter.defining(_vector(rewriter, value))
        match op.name if op is not None else "":
            case "ttir.multiply" if op is not None:
                for operand in op.operands:
                    self.add(rewriter, operand, under=under)
            case "ttir.div" if op is not None:
                self.add(rewriter, op.operands[0], under=under)
                self.add(rewriter, op.operands[1], under=not under)
            case "ttir.reciprocal" if op is not None:
                self.add(rewriter, op.operands[0], under=not under)
            case "ttir.rsqrt" | "ttir.sqrt" if (
                op is not None
                and under == (op.name == "ttir.sqrt")
                and self.variance is None
                and (found := _with_epsilon(rewriter, op.operands[0])) is not None
            ):
                self.variance, self.epsilon = found
            case _:
                (self.below if under else self.above).append(value)


def _vector(rewriter: Rewriter, value: SSAValue) -> SSAValue:
    """A vector before reshapes and conversions between floats."""
    while (op := rewriter.defining(value, "ttir.reshape", "ttir.typecast")) is not None:
        if not is_float(op.operands[0]):
            break
        value = op.operands[0]
    return value


def _with_epsilon(rewriter: Rewriter, value: SSAValue) -> tuple[SSAValue, float] | None:
    """A variance and the number that is added to it."""
    total = rewriter.defining(_vector(rewriter, value), "ttir.add")
    found = with_splat(total) if total is not None else None
    return None if found is None else (found[0], float(found[1]))


@BATCH_NORMS.on("ttir.add")
def fuse_batch_norm_inference(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset, where all but x are weights with an
    element for each index along one dimension."""
    if not is_float(op.results[0]):
        return None
    for value, offset in (tuple(op.operands), (op.operands[1], op.operands[0])):
        if not same_type(value, op) or not is_weight(offset):
            continue
        found = _centered(rewriter, value)
        if found is None or not same_type(found[0].operands[0], op):
            continue
        centered, outer = found
        x, mean = centered.operands
        channel = _channel(mean, op)
        vectors = [offset, *(factor for factor, _ in outer)]
        if channel is None or not all(_is_along(v, channel, op) for v in vectors):
            continue
        factors = _Factors()
        for factor, under in outer:
            factors.add(rewriter, factor, under=under)
        size = op.result_shape[channel]
        if factors.variance is None or prod(shape_of(factors.variance.type)) != size:
            continue
        known = [_scale(rewriter, factors, mean, size), offset, mean, factors.variance]
        if any(prod(shape_of(v.type)) != size for v in known):
            continue
        return rewriter.emit(
            "batch_norm_inference",
            [x, *(rewriter.reshape(v, [size]) for v in known)],
            op.result_type,
            epsilon=factors.epsilon,
            dimension=channel,
        )
    return None


def _centered(
    rewriter: Rewriter, value: SSAValue
) -> tuple[CatalogueOp, list[tuple[SSAValue, bool]]] | None:
    """The difference of a tensor and a weight that `value` is a multiple of, with the weights that
    it is multiplied with or, where the mark is set, divided by."""
    factors: list[tuple[SSAValue, bool]] = []
    while (product := rewriter.sole(value, "ttir.multiply", "ttir.div")) is not None:
        first, second = product.operands
        if is_weight(second):
            value, factor = first, second
        elif product.name == "ttir.multiply" and is_weight(first):
            value, factor = second, first
        else:
            return None
        factors.append((factor, product.name == "ttir.div"))
    difference = rewriter.sole(value, "ttir.subtract") if factors else None
    if difference is None or not is_weight(difference.operands[1]):
        return None
    return difference, factors


def _channel(mean: SSAValue, op: CatalogueOp) -> int | None:
    """The dimension of the result along which a mean varies, None if there is none or several."""
    shape = shape_of(mean.type)
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    if len(axes) != 1 or not 2 <= len(op.result_shape) <= 5:
        return None
    channel = axes[0] + len(op.result_shape) - len(shape)
    return channel if op.result_shape[channel] == shape[axes[0]] else None


def _is_along(value: SSAValue, channel: int, op: CatalogueOp) -> bool:
    """True if a factor or a summand is one number, or varies along that dimension alone."""
    return prod(shape_of(value.type)) == 1 or _channel(value, op) == channel


def _scale(rewriter: Rewriter, factors: _Factors, like: SSAValue, size: int) -> SSAValue:
    """The product of what is not the deviation; in f32, which costs nothing when the program
    runs."""
    element = element_of(like.type)
    if len(factors.above) == 1 and not factors.below:
        scale = rewriter.typecast(factors.above[0], element)
        if prod(shape_of(scale.type)) == size:
            return scale
    scale = rewriter.full([size], 1.0, f32)
    for name, values in (("multiply", factors.above), ("div", factors.below)):
        for value in values:
            vector = rewriter.typecast(unconverted(rewriter, value), f32)
            vector = rewriter.reshape(vector, [prod(shape_of(vector.type))])
            scale = rewriter.like(name, scale, vector)
    return rewriter.typecast(scale, element)
