"""Fusion of bias, scale, padding and batch norm with matmuls and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, shape_of, tensor_type
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.convolution.sliding_window import edges
from ttcodegen.transforms.rewriting import PatternSet, Rewriter
from ttcodegen.transforms.ttir.queries import (
    is_float,
    is_weight,
    same_type,
    unconverted,
    with_splat,
)

# Folding of bias, scale, batch norm and padding into matmuls and convolutions.

PRODUCTS = PatternSet()


@PRODUCTS.on("ttir.add")
def fuse_linear(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Fuses a matmul plus a row to `linear`, through a reshape of the rows."""
    for value, bias in (tuple(op.operands), (op.operands[1], op.operands[0])):
        if not _is_unbroadcast(value, op):
            continue
        product = rewriter.sole(value, "ttir.matmul", "ttir.reshape")
        if product is not None and product.name == "ttir.reshape":
            product = rewriter.sole(product.operands[0], "ttir.matmul")
        if product is None or not _is_row(bias, product, op):
            continue
        row = rewriter.reshape(bias, product.result_shape[-1:])
        transposes = {name: product.parameter(name) for name in ("transpose_a", "transpose_b")}
        operands = [*product.operands, row]
        result = rewriter.emit("linear", operands, product.result_type, **transposes)
        return rewriter.reshape(result, op.result_shape)
    return None


@PRODUCTS.on("ttir.add")
def add_bias_first(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Rewrites (x + A B) + row to x + (A B + row), whose inner sum becomes `linear`."""
    for value, bias in (tuple(op.operands), (op.operands[1], op.operands[0])):
        total = rewriter.sole(value, "ttir.add")
        if total is None or not same_type(value, op) or not is_weight(bias):
            continue
        for index, rest in ((0, 1), (1, 0)):
            product, other = total.operands[index], total.operands[rest]
            found = rewriter.sole(product, "ttir.matmul")
            if found is None or not same_type(product, op) or not same_type(other, op):
                continue
            if _is_row(bias, found, op) and not is_weight(other):
                biased = rewriter.like("add", product, bias)
                return rewriter.like("add", other, biased)
    return None


def _is_unbroadcast(value: SSAValue, op: CatalogueOp) -> bool:
    """Returns whether `value` has the result shape of the op, up to leading ones."""
    shape, result = shape_of(value.type), op.result_shape
    missing = (1,) * (len(result) - len(shape))
    return missing + shape == result and element_of(value.type) == op.result_type.element_type


def _is_row(bias: SSAValue, product: CatalogueOp, op: CatalogueOp) -> bool:
    """Returns whether `bias` is one row added to every row of an unbatched matmul.

    The columns may be split into several dimensions, such as heads and their elements.
    """
    shape, columns = shape_of(bias.type), product.result_shape[-1:]
    if len(product.result_shape) < 2 or columns == (1,) or prod(product.shape("b")[:-2]) != 1:
        return False
    wide = (1,) * (len(op.result_shape) - len(shape)) + shape
    rank = next((n for n in range(1, len(wide) + 1) if prod(wide[-n:]) == columns[0]), 0)
    if rank == 0 or wide[-rank:] != op.result_shape[-rank:] or prod(wide[:-rank]) != 1:
        return False
    if element_of(bias.type) != element_of(product.result_type):
        return False
    # With a single row, the added row may be an activation instead of a bias.
    return prod(product.result_shape[:-1]) > 1 or is_weight(bias)


def _after_transpose(permutation: Sequence[int]) -> list[int]:
    """Returns the permutation to apply after the last two dimensions were exchanged."""
    last = len(permutation) - 1
    return [{last: last - 1, last - 1: last}.get(axis, axis) for axis in permutation]


@PRODUCTS.on("ttir.matmul")
def fold_reversed_permute(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Folds the exchange of the last two dimensions out of a permute into the matmul.

    The rest of the permutation moves only heads, if anything.
    """
    for index, name in enumerate(("transpose_a", "transpose_b")):
        producer = rewriter.sole(op.operands[index], "ttir.permute")
        if producer is None or is_weight(op.operands[index]):
            continue
        permutation: list[int] = producer.parameter("permutation")
        if len(permutation) < 3 or permutation[-2] < permutation[-1]:
            continue
        operands = list(op.operands)
        order = [*permutation[:-2], permutation[-1], permutation[-2]]
        operands[index] = rewriter.permute(producer.operands[0], order)
        return rewriter.again(op, operands, None, **{name: not op.parameter(name)})
    return None


@PRODUCTS.on("ttir.matmul")
def restore_unit_batch(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Restores a dropped batch dimension of size 1 of a batched matmul, as attention patterns have
    it."""
    if len(op.result_shape) != 3 or any(len(shape_of(v.type)) != 3 for v in op.operands):
        return None
    sources: list[SSAValue] = []
    for value in op.operands:
        squeezed = rewriter.sole(value, "ttir.reshape")
        source = None if squeezed is None else squeezed.operands[0]
        if source is not None and shape_of(source.type) == (1, *shape_of(value.type)):
            sources.append(source)
        else:
            sources.append(rewriter.reshape(value, [1, *shape_of(value.type)]))
    if len(rewriter.made) == len(sources):
        return None
    result = tensor_type(op.result_type.element_type, [1, *op.result_shape])
    return rewriter.reshape(rewriter.again(op, sources, result), op.result_shape)


@PRODUCTS.on("ttir.permute")
def fold_permute_into_matmul(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Rewrites a permute that puts rows after columns: (A B)^T = B^T A^T."""
    product = rewriter.sole(op.operands[0], "ttir.matmul")
    permutation: list[int] = op.parameter("permutation")
    last = len(permutation) - 1
    if product is None or last < 2 or permutation.index(last) > permutation.index(last - 1):
        return None
    if any(len(shape_of(value.type)) != last + 1 for value in product.operands):
        return None
    shape = product.result_shape
    exchanged = rewriter.emit(
        "matmul",
        [product.operands[1], product.operands[0]],
        tensor_type(op.result_type.element_type, [*shape[:-2], shape[-1], shape[-2]]),
        transpose_a=not product.parameter("transpose_b"),
        transpose_b=not product.parameter("transpose_a"),
    )
    return rewriter.permute(exchanged, _after_transpose(permutation))


@PRODUCTS.on("ttir.reshape")
def drop_flattening(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Drops the flattening of rows around a matmul."""
    product = rewriter.sole(op.operands[0], "ttir.matmul", "ttir.linear")
    flattened = None if product is None else rewriter.defining(product.operands[0], "ttir.reshape")
    if product is None or flattened is None or product.parameter("transpose_a"):
        return None
    source = flattened.operands[0]
    shape, rows = shape_of(source.type), flattened.result_shape
    if len(rows) != 2 or len(shape) < 3 or shape[-1] != rows[-1] or prod(shape[:-2]) != 1:
        return None
    if len(product.shape("b")) != 2:
        return None
    columns = product.result_shape[-1]
    result = tensor_type(op.result_type.element_type, [*shape[:-1], columns])
    found = rewriter.again(product, [source, *product.operands[1:]], result)
    return rewriter.reshape(found, op.result_shape)


# Convolutions


def _convolution(rewriter: Rewriter, value: SSAValue) -> tuple[CatalogueOp, int] | None:
    """Returns the convolution that defines `value`, and the channel dimension of `value`.

    It may be followed by a permute; both need a single use.
    """
    producer = rewriter.sole(value, "ttir.conv2d", "ttir.permute")
    if producer is None:
        return None
    if producer.name == "ttir.conv2d":
        return producer, producer.parameter("channel_dim") % 4
    permutation = producer.parameter("permutation")
    convolution = rewriter.sole(producer.operands[0], "ttir.conv2d")
    if convolution is None:
        return None
    return convolution, permutation.index(convolution.parameter("channel_dim") % 4)


def _along_channels(value: SSAValue, rank: int, axis: int) -> bool:
    """Returns whether `value` broadcasts to a tensor of that rank along `axis` only."""
    shape = shape_of(value.type)
    position = axis - (rank - len(shape))
    return 0 <= position and prod(shape) == shape[position]


def _with_parameters(
    rewriter: Rewriter,
    op: CatalogueOp,
    value: SSAValue,
    convolution: CatalogueOp,
    weight: SSAValue,
    bias: SSAValue | None,
) -> SSAValue:
    """Returns the convolution with another weight and bias, followed by the permute before `op`."""
    parameters = convolution.parameters()
    operands = [convolution.operand("input"), weight, bias]
    result = rewriter.emit("conv2d", operands, convolution.result_type, **parameters)
    between = value.owner
    if between is convolution or not isinstance(between, CatalogueOp):
        return result
    return rewriter.again(between, [result], op.result_type)


@PRODUCTS.on("ttir.permute")
def permute_before_padding(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Moves a permute before padding, where it moves less and convolutions can fold the padding."""
    pad = rewriter.sole(op.operands[0], "ttir.pad")
    if pad is None:
        return None
    permutation: list[int] = op.parameter("permutation")
    widths: list[int] = pad.parameter("padding")
    moved = [width for axis in permutation for width in widths[2 * axis : 2 * axis + 2]]
    source = rewriter.permute(pad.operand("input"), permutation)
    value = pad.parameter("value")
    return rewriter.emit("pad", [source], op.result_type, padding=moved, value=value)


_POSITIONS = ("length_dim", "depth_dim", "height_dim", "width_dim")


@PRODUCTS.on("ttir.conv1d", "ttir.conv2d", "ttir.conv3d")
def fuse_padding(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Folds zero padding of the image into the convolution, which then copies no image."""
    pad = rewriter.sole(op.operand("input"), "ttir.pad")
    parameters = op.parameters()
    plain = parameters.get("padding_mode", "zeros") == "zeros"
    if pad is None or pad.parameter("value") != 0 or not plain:
        return None
    if parameters.get("flattened_compat_info") is not None:
        return None
    rank = len(op.result_shape)
    numbers: list[int] = pad.parameter("padding")
    widths = list(zip(numbers[::2], numbers[1::2], strict=True))
    axes: list[int] = [parameters[name] % rank for name in _POSITIONS if name in parameters]
    others = [widths[axis] for axis in range(rank) if axis not in axes]
    if any(pair != (0, 0) for pair in others) or min(numbers, default=0) < 0:
        return None
    own = edges(op, len(axes))
    before = [first + widths[axis][0] for (first, _), axis in zip(own, axes, strict=True)]
    after = [last + widths[axis][1] for (_, last), axis in zip(own, axes, strict=True)]
    if op.name == "ttir.conv3d" and before != after:
        return None
    parameters["padding"] = before if before == after and len(axes) > 1 else before + after
    operands = [pad.operand("input"), op.operand("weight"), op.optional_operand("bias")]
    return rewriter.emit(op.definition.short_name, operands, op.result_type, **parameters)


@PRODUCTS.on("ttir.add", "ttir.subtract")
def fuse_convolution_bias(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Folds the sum of a convolution and a vector per channel into its bias."""
    pairs = [tuple(op.operands)]
    if op.name == "ttir.add":
        pairs.append((op.operands[1], op.operands[0]))
    for value, bias in pairs:
        found = _convolution(rewriter, value)
        if found is None or not same_type(value, op):
            continue
        convolution, axis = found
        channels = op.result_shape[axis]
        known = convolution.optional_operand("bias")
        is_bias = _along_channels(bias, len(op.result_shape), axis)
        if not is_bias or prod(shape_of(bias.type)) != channels or not is_weight(bias):
            continue
        bias = rewriter.reshape(bias, [1, 1, 1, channels])
        if op.name == "ttir.subtract":
            bias = rewriter.like("neg", bias)
        if known is not None:
            bias = rewriter.like("add", rewriter.reshape(known, [1, 1, 1, channels]), bias)
        weight = convolution.operand("weight")
        return _with_parameters(rewriter, op, value, convolution, weight, bias)
    return None


@PRODUCTS.on("ttir.multiply")
def fuse_convolution_scale(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Folds a scale per channel into the weights, which are scaled before the program runs."""
    for value, scale in (tuple(op.operands), (op.operands[1], op.operands[0])):
        found = _convolution(rewriter, value)
        if found is None or not same_type(value, op):
            continue
        convolution, axis = found
        if not _along_channels(scale, len(op.result_shape), axis) or not is_weight(scale):
            continue
        weight, bias = _scaled(rewriter, convolution, scale)
        if weight is not None:
            return _with_parameters(rewriter, op, value, convolution, weight, bias)
    return None


@PRODUCTS.on("ttir.div")
def scale_by_inverse(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Rewrites the division by a weight per channel, such as a deviation, to a multiplication."""
    value, divisor = op.operands
    found = _convolution(rewriter, value)
    if found is None or not same_type(value, op) or not is_weight(divisor):
        return None
    if not is_weight(found[0].operand("weight")):
        return None
    if not _along_channels(divisor, len(op.result_shape), found[1]):
        return None
    inverse = rewriter.like("reciprocal", rewriter.typecast(divisor, f32))
    inverse = rewriter.typecast(inverse, op.result_type.element_type)
    return rewriter.emit("multiply", [value, inverse], op.result_type)


def _scaled(
    rewriter: Rewriter, convolution: CatalogueOp, scale: SSAValue
) -> tuple[SSAValue | None, SSAValue | None]:
    """Returns weight and bias of a convolution scaled per output channel.

    The weight is None if it is only known when the program runs.
    """
    weight = convolution.operand("weight")
    bias = convolution.optional_operand("bias")
    channels = shape_of(weight.type)[0]
    per_channel = prod(shape_of(scale.type))
    known = is_weight(weight) and (bias is None or is_weight(bias))
    if not known or per_channel not in (1, channels):
        return None, None
    # In f32, so that the product is rounded once; const-eval makes this free at run time.
    scale = rewriter.typecast(scale, f32)
    column = rewriter.reshape(scale, [per_channel, 1])
    # A row for each channel: with the kernel in the last dimensions, tiles would be mostly padding.
    rows = rewriter.reshape(weight, [channels, prod(shape_of(weight.type)[1:])])
    scaled = rewriter.like("multiply", rewriter.typecast(rows, f32), column)
    if bias is not None:
        row = rewriter.reshape(scale, [1, 1, 1, per_channel])
        wide = rewriter.typecast(rewriter.reshape(bias, [1, 1, 1, channels]), f32)
        product = rewriter.like("multiply", wide, row)
        bias = rewriter.typecast(product, element_of(bias.type))
    scaled = rewriter.typecast(scaled, element_of(weight.type))
    return rewriter.reshape(scaled, shape_of(weight.type)), bias


@PRODUCTS.on("ttir.batch_norm_inference")
def fuse_batch_norm(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Folds a batch norm, (conv(x) - mean) / sqrt(variance + epsilon) * scale + offset.

    The weights are scaled, and the bias replaced.
    """
    value = op.operand("operand")
    found = _convolution(rewriter, value)
    if found is None or not same_type(value, op):
        return None
    convolution, axis = found
    names = ("scale", "offset", "mean", "variance")
    vectors = [op.operand(name) for name in names]
    if axis != op.parameter("dimension") % 4 or not all(is_weight(v) for v in vectors):
        return None
    channels = op.result_shape[axis]
    scale, offset, mean, variance = (
        rewriter.reshape(rewriter.typecast(v, f32), [1, 1, 1, channels]) for v in vectors
    )
    epsilon = rewriter.full([1, 1, 1, 1], float(op.parameter("epsilon")), f32)
    deviation = rewriter.like("add", variance, epsilon)
    factor = rewriter.like("multiply", scale, rewriter.like("rsqrt", deviation))
    weight, bias = _scaled(rewriter, convolution, factor)
    if weight is None:
        return None
    shift = rewriter.like("subtract", offset, rewriter.like("multiply", mean, factor))
    shift = rewriter.typecast(shift, op.result_type.element_type)
    bias = shift if bias is None else rewriter.like("add", bias, shift)
    return _with_parameters(rewriter, op, value, convolution, weight, bias)


# Decomposed batch norms with known statistics.

BATCH_NORMS = PatternSet()


@dataclass
class _Factors:
    """Multipliers and divisors of a mean-centred tensor."""

    above: list[SSAValue] = field(default_factory=list[SSAValue])
    below: list[SSAValue] = field(default_factory=list[SSAValue])
    variance: SSAValue | None = None
    epsilon: float = 0.0

    def add(self, rewriter: Rewriter, value: SSAValue, *, under: bool) -> None:
        """Decomposes a factor, or a divisor if `under`; extracts 1 / sqrt(variance + epsilon)."""
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
    """Returns a vector before reshapes and conversions between floats."""
    while (op := rewriter.defining(value, "ttir.reshape", "ttir.typecast")) is not None:
        if not is_float(op.operands[0]):
            break
        value = op.operands[0]
    return value


def _with_epsilon(rewriter: Rewriter, value: SSAValue) -> tuple[SSAValue, float] | None:
    """Matches variance + epsilon."""
    total = rewriter.defining(_vector(rewriter, value), "ttir.add")
    found = with_splat(total) if total is not None else None
    return None if found is None else (found[0], float(found[1]))


@BATCH_NORMS.on("ttir.add")
def fuse_batch_norm_inference(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Matches (x - mean) / sqrt(variance + epsilon) * scale + offset.

    All but x are weights that vary along one dimension.
    """
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
    """Matches a scaled `x - weight`; returns the difference, and its factors with True for
    divisors."""
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
    """Returns the only result dimension along which a mean varies, or None."""
    shape = shape_of(mean.type)
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    if len(axes) != 1 or not 2 <= len(op.result_shape) <= 5:
        return None
    channel = axes[0] + len(op.result_shape) - len(shape)
    return channel if op.result_shape[channel] == shape[axes[0]] else None


def _is_along(value: SSAValue, channel: int, op: CatalogueOp) -> bool:
    """Returns whether a value is a scalar or varies along that dimension only."""
    return prod(shape_of(value.type)) == 1 or _channel(value, op) == channel


def _scale(rewriter: Rewriter, factors: _Factors, like: SSAValue, size: int) -> SSAValue:
    """Returns the product of the factors but the deviation, in f32: const-eval makes it free at run
    time."""
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
