"""Fusion of decomposed reductions with kept dimensions, means, softmax and norms."""

from __future__ import annotations

from math import inf, prod

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.ops.core.dimensions import dimension_groups
from ttcodegen.ops.reduction.norms import LEAST_SCORE
from ttcodegen.ops.reduction.reduce import reduced_dims
from ttcodegen.transforms.rewriting import PatternSet, Rewriter
from ttcodegen.transforms.ttir.arithmetic_rules import is_lossless
from ttcodegen.transforms.ttir.fusing import row_statistics as statistics
from ttcodegen.transforms.ttir.queries import (
    close,
    is_float,
    same_type,
    unconverted,
    with_splat,
)

NORMALIZATIONS = PatternSet()


@NORMALIZATIONS.on("ttir.reshape")
def keep_dimensions(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Fuses a reduction and a reshape that restores the reduced dimensions."""
    producer = rewriter.sole(
        op.operands[0], "ttir.sum", "ttir.mean", "ttir.max", "ttir.min", "ttir.prod"
    )
    if producer is None or producer.parameter("keep_dim"):
        return None
    source = producer.operands[0]
    dims = reduced_dims(producer)
    kept = [1 if axis in dims else size for axis, size in enumerate(shape_of(source.type))]
    if tuple(kept) != op.result_shape:
        return None
    return rewriter.again(producer, [source], op.result_type, keep_dim=True)


@NORMALIZATIONS.on("ttir.sum", "ttir.mean", "ttir.max", "ttir.min", "ttir.prod")
def drop_unit_reductions(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Drops dimensions of size 1 from a reduction.

    Row statistics may be written as those of the channels of a batch.
    """
    source = op.operands[0]
    shape = shape_of(source.type)
    dims = reduced_dims(op)
    kept = [dim for dim in dims if shape[dim] != 1]
    if not kept or len(kept) == len(dims):
        return None
    sizes = [1 if axis in kept else size for axis, size in enumerate(shape)]
    result = tensor_type(op.result_type.element_type, sizes)
    reduced = rewriter.again(op, [source], result, dim_arg=kept, keep_dim=True)
    return rewriter.reshape(reduced, op.result_shape)


@NORMALIZATIONS.on("ttir.multiply", "ttir.div")
def fuse_mean(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """A sum divided by the number of its terms."""
    if op.name == "ttir.multiply":
        found = with_splat(op)
        value, number = found if found is not None else (op.operands[0], None)
    else:
        divisor = splat_of(op.operands[1])
        value, number = op.operands[0], 1.0 / divisor if divisor else None
    shaped = rewriter.sole(value, "ttir.reshape")
    producer = rewriter.sole(value if shaped is None else shaped.operands[0], "ttir.sum")
    if producer is None or number is None or not is_float(value):
        return None
    if producer.result_type.element_type != op.result_type.element_type:
        return None
    source = producer.operands[0]
    dims = reduced_dims(producer)
    count = prod(shape_of(source.type)[dim] for dim in dims)
    if count == 0 or not close(number, 1.0 / count, value):
        return None
    # Broadcasting with the constant may restore dimensions of size 1 that the sum dropped.
    if prod(op.result_shape) != prod(producer.result_shape):
        return None
    keep_dim = producer.parameter("keep_dim")
    mean = rewriter.emit("mean", [source], producer.result_type, dim_arg=dims, keep_dim=keep_dim)
    return rewriter.reshape(mean, op.result_shape)


# Softmax


@NORMALIZATIONS.on("ttir.div", "ttir.multiply")
def fuse_softmax(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """exp(x - max(x)) / sum(exp(x - max(x))).

    Not without the maximum: exponentials may then overflow or all be zero, where a softmax is
    finite.
    """
    exponentials, total = op.operands
    if op.name == "ttir.multiply":
        found = _inverse_factor(rewriter, op)
        if found is None:
            return None
        exponentials, total = found
    summed = rewriter.sole(unconverted(rewriter, total), "ttir.sum")
    producer = rewriter.defining(exponentials, "ttir.exp")
    if summed is None or producer is None:
        return None
    # Frameworks accumulate half precision in single precision, as the library does anyway.
    if unconverted(rewriter, summed.operands[0]) is not exponentials:
        return None
    dims = reduced_dims(summed)
    # The exponentials may have no other use than the sum and the quotient.
    if len(dims) != 1 or not summed.parameter("keep_dim") or not _has_uses(exponentials, 2):
        return None
    if not same_type(exponentials, op) or not is_float(exponentials):
        return None
    original = _before_maximum(rewriter, producer.operands[0], op, dims[0])
    if original is None:
        return None
    return rewriter.emit(
        "softmax", [original], op.result_type, dimension=dims[0], numericStable=True
    )


def _inverse_factor(rewriter: Rewriter, op: CatalogueOp) -> tuple[SSAValue, SSAValue] | None:
    """Matches a product with a reciprocal: its factor and the inverted value."""
    for value, factor in (op.operands, op.operands[::-1]):
        inverse = rewriter.sole(factor, "ttir.reciprocal", "ttir.div")
        if inverse is None or (inverse.name == "ttir.div" and splat_of(inverse.operands[0]) != 1):
            continue
        return value, inverse.operands[-1]
    return None


def _before_maximum(
    rewriter: Rewriter, value: SSAValue, op: CatalogueOp, dim: int
) -> SSAValue | None:
    """Matches x - max(x) along the dimension, with `op` its softmax; returns x or None."""
    producer = rewriter.sole(_without_floor(rewriter, value), "ttir.subtract")
    if producer is None:
        return None
    source, maximum = producer.operands
    if not same_type(source, producer):
        return None
    unguarded = _unguarded(rewriter, maximum)
    reduced = rewriter.defining(unguarded, "ttir.max")
    if reduced is not None and reduced.operands[0] is source:
        is_own = reduced.parameter("keep_dim") and reduced_dims(reduced) == [dim]
    else:
        is_own = _is_moved_maximum(rewriter, producer, dim)
        unguarded = None if _is_guarded(rewriter, maximum) else maximum
    if not is_own or (unguarded is not maximum and not _is_only_contracted(op, dim)):
        return None
    return source


def _without_floor(rewriter: Rewriter, value: SSAValue) -> SSAValue:
    """Strips the lower bound that device programs put on distances from the row maximum.

    The bound makes rows of only the lowest scores (`LEAST_SCORE`) uniform.
    """
    floored = rewriter.sole(value, "ttir.maximum")
    choice = None if floored is None else rewriter.defining(floored.operands[1], "ttir.where")
    if floored is None or choice is None or splat_of(choice.operands[2]) != -inf:
        return value
    is_low = rewriter.defining(choice.operands[0], "ttir.lt")
    if is_low is None or splat_of(is_low.operands[1]) != LEAST_SCORE:
        return value
    return floored.operands[0]


def _unguarded(rewriter: Rewriter, maximum: SSAValue) -> SSAValue:
    """Returns a maximum before infinite values were replaced by zero.

    Rows with maximum minus infinity are NaN either way. Rows with maximum infinity become NaN
    throughout in a softmax, where the guarded form has zeros among NaN.
    """
    choice = rewriter.defining(maximum, "ttir.where")
    if choice is None or splat_of(choice.operands[2]) != 0:
        return maximum
    condition, found, _ = choice.operands
    finite = rewriter.defining(condition, "ttir.isfinite")
    return found if finite is not None and finite.operands[0] is found else maximum


def _is_only_contracted(op: CatalogueOp, dim: int) -> bool:
    """Returns whether only matmuls use the op's result, each contracting dimension `dim`.

    A single NaN in a row then has the same effect as a row of NaN.
    """
    pending = [(op.results[0], dim)]
    for _ in range(_MOST_MOVES):
        if not pending:
            return True
        value, axis = pending.pop()
        for use in value.uses:
            user = use.operation
            if not isinstance(user, CatalogueOp) or value.first_use is None:
                return False
            if user.name == "ttir.matmul":
                side = "transpose_b" if use.index else "transpose_a"
                last = len(shape_of(value.type)) - 1
                summed = last - 1 if (use.index == 0) == user.parameter(side) else last
                if axis != summed:
                    return False
            elif (moved := _moved_axis(user, axis)) is not None:
                pending.append((user.results[0], moved))
            else:
                return False
    return False


_MOST_MOVES = 16


def _moved_axis(op: CatalogueOp, axis: int) -> int | None:
    """Maps an operand dimension to the op's result dimension, or None if it is gone."""
    if op.name == "ttir.typecast":
        return axis if is_float(op.results[0]) else None
    if op.name == "ttir.permute":
        return op.parameter("permutation").index(axis)
    if op.name != "ttir.reshape":
        return None
    size = shape_of(op.operands[0].type)[axis]
    for before, after in dimension_groups(shape_of(op.operands[0].type), op.result_shape):
        if axis in before:
            found = [dim for dim in after if op.result_shape[dim] != 1]
            whole = [dim for dim in before if shape_of(op.operands[0].type)[dim] != 1] == [axis]
            return found[0] if whole and len(found) == 1 and size != 1 else None
    return None


@NORMALIZATIONS.on("ttir.exp")
def fuse_softmax_of_logarithms(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """exp(x - log(sum(exp(x - m))) - m) with the maximum m."""
    producer = rewriter.sole(op.operands[0], "ttir.subtract")
    if producer is None or not is_float(op.results[0]):
        return None
    source, normalizer = producer.operands
    if not same_type(source, op):
        return None
    total = statistics.statistic(rewriter, normalizer)
    addition = rewriter.defining(total, "ttir.add")
    pairs = [(total, None)] if addition is None else _both_ways(addition)
    for logarithm, shift in pairs:
        dim = _exponentials_of(rewriter, logarithm, source, shift)
        if dim is None or shift is None or not _is_kept(normalizer, op, dim):
            continue
        maximum = statistics.statistic(rewriter, shift)
        unguarded = _unguarded(rewriter, maximum)
        reduced = rewriter.defining(statistics.statistic(rewriter, unguarded), "ttir.max")
        if reduced is None or reduced_dims(reduced) != [dim]:
            continue
        if not statistics.is_same_tensor(rewriter, reduced.operands[0], source):
            continue
        if unguarded is not maximum and not _is_only_contracted(op, dim):
            continue
        return rewriter.emit("softmax", [source], op.result_type, dimension=dim, numericStable=True)
    return None


def _both_ways(op: CatalogueOp) -> list[tuple[SSAValue, SSAValue | None]]:
    lhs, rhs = op.operands
    return [(lhs, rhs), (rhs, lhs)]


def _exponentials_of(
    rewriter: Rewriter, value: SSAValue, source: SSAValue, shift: SSAValue | None
) -> int | None:
    """Matches log(sum(exp(source - shift))), or without shift; returns the summed dimension.

    An absolute value of the sum is ignored, since it is positive.
    """
    logarithm = rewriter.defining(statistics.statistic(rewriter, value), "ttir.log")
    if logarithm is None:
        return None
    inner = statistics.statistic(rewriter, logarithm.operands[0])
    magnitude = rewriter.defining(inner, "ttir.abs")
    if magnitude is not None:
        inner = statistics.statistic(rewriter, magnitude.operands[0])
    summed = rewriter.defining(inner, "ttir.sum")
    dims = [] if summed is None else reduced_dims(summed)
    if summed is None or len(dims) != 1:
        return None
    exponential = rewriter.defining(unconverted(rewriter, summed.operands[0]), "ttir.exp")
    if exponential is None:
        return None
    exponent = exponential.operands[0]
    if shift is None:
        return dims[0] if exponent is source else None
    difference = rewriter.defining(exponent, "ttir.subtract")
    if difference is None or difference.operands[0] is not source:
        return None
    first, second = (statistics.statistic(rewriter, v) for v in (difference.operands[1], shift))
    return (
        dims[0]
        if first is second and _is_kept(difference.operands[1], difference, dims[0])
        else None
    )


def _is_kept(value: SSAValue, op: CatalogueOp, dim: int) -> bool:
    """Returns whether `value` has the result shape of the op, reduced along a dimension."""
    kept = [1 if axis == dim else size for axis, size in enumerate(op.result_shape)]
    shape = shape_of(value.type)
    return [1] * (len(kept) - len(shape)) + [*shape] == kept


@NORMALIZATIONS.on("ttir.softmax")
def fuse_moved_maximum(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Drops the maximum in a softmax of x - max(x), both moved after the maximum was taken."""
    producer = rewriter.sole(op.operands[0], "ttir.subtract")
    if producer is None or not same_type(producer.operands[0], producer):
        return None
    dim = op.parameter("dimension") % len(producer.result_shape)
    if not _is_moved_maximum(rewriter, producer, dim):
        return None
    return rewriter.again(op, [producer.operands[0]], numericStable=True)


def _is_moved_maximum(rewriter: Rewriter, difference: CatalogueOp, dim: int) -> bool:
    """Returns whether the subtrahend is a maximum of the minuend, constant along the dimension.

    Such a shift changes only the range of a softmax.
    """
    source, maximum = difference.operands
    shape = shape_of(maximum.type)
    place = dim - (len(difference.result_shape) - len(shape))
    reduced = rewriter.defining(_in_first_order(rewriter, maximum), "ttir.max")
    if reduced is None or (place >= 0 and shape[place] != 1):
        return False
    return _in_first_order(rewriter, reduced.operands[0]) is _in_first_order(rewriter, source)


def _is_guarded(rewriter: Rewriter, maximum: SSAValue) -> bool:
    """Returns whether infinite maxima were replaced, before or after data movement."""
    value = maximum
    while (producer := rewriter.defining(value, "ttir.reshape", "ttir.permute")) is not None:
        value = producer.operands[0]
    return _unguarded(rewriter, value) is not value


def _in_first_order(rewriter: Rewriter, value: SSAValue) -> SSAValue:
    """Returns `value` before data movement and before infinite maxima were replaced."""
    while True:
        producer = rewriter.defining(value, "ttir.reshape", "ttir.permute")
        found = _unguarded(rewriter, value) if producer is None else producer.operands[0]
        if found is value:
            return value
        value = found


def _has_uses(value: SSAValue, count: int) -> bool:
    uses = iter(value.uses)
    return sum(1 for _ in zip(range(count + 1), uses, strict=False)) == count


# Norms over the last dimension


@NORMALIZATIONS.on("ttir.multiply", "ttir.div")
def fuse_norm(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """RMS norm x / sqrt(mean(x^2) + epsilon), or layer norm of x less its mean, over the last
    dimension.

    The inverse deviation may be multiplied by a weight first.
    """
    if not is_float(op.results[0]):
        return None
    pairs = [tuple(op.operands)]
    if op.name == "ttir.multiply":
        pairs.append((op.operands[1], op.operands[0]))
    for value, factor in pairs:
        if not same_type(value, op):
            continue
        for inverse, weight in _weighted(rewriter, factor, op):
            norm = statistics.normalized(rewriter, value, inverse, op.name == "ttir.div")
            vector = None if norm is None or weight is None else _vector(rewriter, weight, op)
            if norm is None or (vector is None) != (weight is None):
                continue
            return rewriter.emit(
                "layer_norm" if norm.is_centered else "rms_norm",
                [rewriter.typecast(norm.source, op.result_type.element_type), vector, None],
                op.result_type,
                normalized_shape=[op.result_shape[-1]],
                epsilon=norm.epsilon,
            )
    return None


def _weighted(
    rewriter: Rewriter, factor: SSAValue, op: CatalogueOp
) -> list[tuple[SSAValue, SSAValue | None]]:
    """Splits a factor into candidates for inverse deviation and weight."""
    product = rewriter.sole(factor, "ttir.multiply") if op.name == "ttir.multiply" else None
    if product is None:
        return [(factor, None)]
    first, second = product.operands
    return [(first, second), (second, first)]


_NORMS = ("ttir.rms_norm", "ttir.layer_norm")


def _vector(rewriter: Rewriter, value: SSAValue, norm: CatalogueOp) -> SSAValue | None:
    """Returns `value` as a vector along the last dimension of the norm, or None if it varies
    otherwise."""
    shape, size = shape_of(value.type), norm.result_shape[-1]
    if not shape or shape[-1] != size:
        return None
    if prod(shape[:-1]) != 1 or len(shape) > len(norm.result_shape):
        return None
    conversion = rewriter.defining(value, "ttir.typecast")
    if conversion is None:
        return rewriter.reshape(value, [size])
    # Reshape before the conversion, so that a norm in the source type can strip the conversion.
    return rewriter.typecast(
        rewriter.reshape(conversion.operands[0], [size]), element_of(value.type)
    )


@NORMALIZATIONS.on("ttir.multiply")
def fuse_norm_weight(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """A norm times a vector."""
    for value, other in (tuple(op.operands), (op.operands[1], op.operands[0])):
        norm = rewriter.sole(value, *_NORMS)
        if norm is None or not same_type(value, op):
            continue
        if norm.optional_operand("weight") or norm.optional_operand("bias"):
            continue
        if len(norm.parameter("normalized_shape")) != 1:
            continue
        weight = _vector(rewriter, other, norm)
        if weight is not None:
            return _norm(rewriter, norm, op, [norm.operand("input"), weight, None])
    return None


@NORMALIZATIONS.on("ttir.add")
def fuse_norm_bias(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """A weighted layer norm plus a vector."""
    for value, other in (tuple(op.operands), (op.operands[1], op.operands[0])):
        norm = rewriter.sole(value, "ttir.layer_norm")
        if norm is None or not same_type(value, op) or norm.optional_operand("bias"):
            continue
        if len(norm.parameter("normalized_shape")) != 1:
            continue
        weight = norm.optional_operand("weight")
        bias = None if weight is None else _vector(rewriter, other, norm)
        if bias is not None:
            return _norm(rewriter, norm, op, [norm.operand("input"), weight, bias])
    return None


@NORMALIZATIONS.on("ttir.typecast")
def norm_in_source_type(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Drops lossless conversions around a norm: the library computes in f32 internally."""
    norm = rewriter.sole(op.operands[0], *_NORMS, "ttir.softmax", "ttir.batch_norm_inference")
    before = None if norm is None else rewriter.defining(norm.operands[0], "ttir.typecast")
    if norm is None or before is None:
        return None
    source = before.operands[0]
    element = element_of(source.type)
    if element != op.result_type.element_type:
        return None
    if not is_float(source) or not is_lossless(element, element_of(norm.operands[0].type)):
        return None
    vectors = [_narrowed(rewriter, vector, source) for vector in norm.operands[1:]]
    return rewriter.again(norm, [source, *vectors], op.result_type)


def _narrowed(rewriter: Rewriter, vector: SSAValue, like: SSAValue) -> SSAValue:
    """Returns a vector before it was widened to the type of the norm."""
    producer = rewriter.defining(vector, "ttir.typecast")
    if producer is not None and element_of(producer.operands[0].type) == element_of(like.type):
        return producer.operands[0]
    return vector


@NORMALIZATIONS.on("ttir.multiply")
def fuse_converted_norm_weight(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """A converted norm times a vector: the product is then rounded once."""
    for value, other in (tuple(op.operands), (op.operands[1], op.operands[0])):
        conversion = rewriter.sole(value, "ttir.typecast")
        if conversion is None or not same_type(value, op) or not is_float(value):
            continue
        norm = rewriter.sole(conversion.operands[0], "ttir.rms_norm")
        if norm is None or norm.optional_operand("weight"):
            continue
        if len(norm.parameter("normalized_shape")) != 1:
            continue
        if not is_lossless(element_of(value.type), element_of(norm.result_type)):
            continue
        weight = _vector(rewriter, other, norm)
        if weight is not None:
            return _norm(rewriter, norm, op, [norm.operand("input"), weight, None])
    return None


def _norm(
    rewriter: Rewriter, norm: CatalogueOp, op: CatalogueOp, operands: list[SSAValue | None]
) -> SSAValue:
    """Returns the norm with other operands, converted to the type of the op that it replaces."""
    value = rewriter.emit(
        norm.definition.short_name,
        operands,
        norm.result_type,
        normalized_shape=norm.parameter("normalized_shape"),
        epsilon=norm.parameter("epsilon"),
    )
    return rewriter.typecast(value, op.result_type.element_type)
