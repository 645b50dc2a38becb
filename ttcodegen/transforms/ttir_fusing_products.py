"""Bias, scale, batch normalisation and padding that belong to a product or a convolution."""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from ttcodegen.dialects.datatypes import element_of, f32, shape_of
from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.ops.sliding_window import edges
from ttcodegen.transforms.rewriting import PatternSet, Rewriter
from ttcodegen.transforms.ttir_patterns import is_weight, same_type

PRODUCTS = PatternSet()


@PRODUCTS.on("ttir.add")
def fuse_linear(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """A product plus a row is a linear layer; a reshape of the rows may stand between."""
    for value, bias in (tuple(op.operands), (op.operands[1], op.operands[0])):
        if not same_type(value, op):
            continue
        product = rewriter.sole(value, "ttir.matmul", "ttir.reshape")
        if product is not None and product.name == "ttir.reshape":
            product = rewriter.sole(product.operands[0], "ttir.matmul")
        if product is None or not _is_row(bias, product, op):
            continue
        row = rewriter.reshape(bias, [op.result_shape[-1]])
        transposes = {name: product.parameter(name) for name in ("transpose_a", "transpose_b")}
        operands = [*product.operands, row]
        result = rewriter.emit("linear", operands, product.result_type, **transposes)
        return rewriter.reshape(result, op.result_shape)
    return None


def _is_row(bias: SSAValue, product: CatalogueOp, op: CatalogueOp) -> bool:
    """Whether `bias` is one row that is added to every row of an unbatched product."""
    shape, columns = shape_of(bias.type), product.result_shape[-1:]
    if not shape or shape[-1:] != columns or op.result_shape[-1:] != columns or columns == (1,):
        return False
    if prod(shape) != shape[-1] or prod(product.shape("b")[:-2]) != 1:
        return False
    if len(product.result_shape) < 2 or element_of(bias.type) != element_of(product.result_type):
        return False
    # With one row only, what is added may as well be an activation, which is no bias.
    return prod(product.result_shape[:-1]) > 1 or is_weight(bias)


# Convolutions


def _convolution(rewriter: Rewriter, value: SSAValue) -> tuple[CatalogueOp, int] | None:
    """The convolution that made `value`, maybe through a permute, if nobody else uses it, and which
    dimension of `value` its channels are."""
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
    """Whether `value` broadcasts onto a tensor of that rank along one dimension only."""
    shape = shape_of(value.type)
    position = axis - (rank - len(shape))
    return 0 <= position and prod(shape) == shape[position]


def _again(
    rewriter: Rewriter,
    op: CatalogueOp,
    value: SSAValue,
    convolution: CatalogueOp,
    weight: SSAValue,
    bias: SSAValue | None,
) -> SSAValue:
    """The convolution with another weight and bias, and what stood between it and `op`."""
    parameters = convolution.parameters()
    operands = [convolution.operand("input"), weight, bias]
    result = rewriter.emit("conv2d", operands, convolution.result_type, **parameters)
    between = value.owner
    if between is convolution or not isinstance(between, CatalogueOp):
        return result
    return rewriter.again(between, [result], op.result_type)


_POSITIONS = ("length_dim", "depth_dim", "height_dim", "width_dim")


@PRODUCTS.on("ttir.conv1d", "ttir.conv2d", "ttir.conv3d")
def fuse_padding(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Zeros around the image are padding of the convolution, which does not copy the image."""
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


@PRODUCTS.on("ttir.add")
def fuse_convolution_bias(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """A convolution plus a number per channel."""
    for value, bias in (tuple(op.operands), (op.operands[1], op.operands[0])):
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
        if known is not None:
            bias = rewriter.like("add", rewriter.reshape(known, [1, 1, 1, channels]), bias)
        weight = convolution.operand("weight")
        return _again(rewriter, op, value, convolution, weight, bias)
    return None


@PRODUCTS.on("ttir.multiply")
def fuse_convolution_scale(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """A convolution times a number per channel: the weights are scaled, before the program runs."""
    for value, scale in (tuple(op.operands), (op.operands[1], op.operands[0])):
        found = _convolution(rewriter, value)
        if found is None or not same_type(value, op):
            continue
        convolution, axis = found
        if not _along_channels(scale, len(op.result_shape), axis) or not is_weight(scale):
            continue
        weight, bias = _scaled(rewriter, convolution, scale)
        if weight is not None:
            return _again(rewriter, op, value, convolution, weight, bias)
    return None


def _scaled(
    rewriter: Rewriter, convolution: CatalogueOp, scale: SSAValue
) -> tuple[SSAValue | None, SSAValue | None]:
    """Weight and bias of a convolution times a number per output channel; None for the weight if it
    is only known when the program runs."""
    weight = convolution.operand("weight")
    bias = convolution.optional_operand("bias")
    channels = shape_of(weight.type)[0]
    per_channel = prod(shape_of(scale.type))
    known = is_weight(weight) and (bias is None or is_weight(bias))
    if not known or per_channel not in (1, channels):
        return None, None
    # In f32, so that the product is rounded once; it costs nothing when the program runs.
    scale = rewriter.typecast(scale, f32)
    column = rewriter.reshape(scale, [per_channel, 1])
    # A row for each channel: with the kernel as last dimensions, tiles would hold padding only.
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
    """(conv(x) - mean) / sqrt(variance + epsilon) * scale + offset is a convolution with scaled
    weights and another bias."""
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
    return _again(rewriter, op, value, convolution, weight, bias)
