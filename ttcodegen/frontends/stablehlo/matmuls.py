"""Matmuls and convolutions."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import AnyFloat, Float32Type, i32
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, i1, shape_of, tensor_type
from ttcodegen.dialects.ttcore.tile import whole_tiles
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.frontends.matrices.matrix import Matrix
from ttcodegen.frontends.stablehlo import complex_numbers
from ttcodegen.frontends.stablehlo.conversion import (
    Complex,
    Conversion,
    Rule,
    Value,
)
from ttcodegen.frontends.stablehlo.movement import padded
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp, factors, part_element

# Matmuls, and convolutions.


@dataclass(frozen=True)
class Dimensions:
    """Dimension pairs of a dot_general: batch and contracting dimensions."""

    batch: tuple[list[int], list[int]]
    contracted: tuple[list[int], list[int]]


def _bilinear(multiply: Callable[[SSAValue, SSAValue], SSAValue], conversion: Conversion,
              left: Value, right: Value) -> Value:  # fmt: skip
    """Applies a bilinear op on real tensors to real or complex operands."""
    if not isinstance(left, Complex) and not isinstance(right, Complex):
        assert isinstance(left, SSAValue)
        assert isinstance(right, SSAValue)
        return multiply(left, right)
    p = complex_numbers.as_complex(conversion, left)
    q = complex_numbers.as_complex(conversion, right)
    b = conversion.builder
    real = b.like("subtract", multiply(p.real, q.real), multiply(p.imag, q.imag))
    imag = b.like("add", multiply(p.real, q.imag), multiply(p.imag, q.real))
    return Complex(real, imag)


def _dot_general(conversion: Conversion, op: StableHLOOp) -> Value:
    numbers = op["dot_dimension_numbers"]

    def dims(kind: str) -> tuple[list[int], list[int]]:
        left, right = (numbers.get(f"{side}_{kind}_dimensions", []) for side in ("lhs", "rhs"))
        return [int(dim) for dim in left], [int(dim) for dim in right]

    found = Dimensions(dims("batching"), dims("contracting"))
    for side, operand in enumerate(op.operands[:2]):
        rank = len(shape_of(operand.type))
        named = [*found.batch[side], *found.contracted[side]]
        if len(set(named)) != len(named) or any(not 0 <= dim < rank for dim in named):
            raise ValueError(f"{named} are no different dimensions of operand {side}")
    return _product(conversion, op, found)


def _ragged_dot(conversion: Conversion, op: StableHLOOp) -> Value:
    """Ragged dot: groups of rows, sized at run time, each with its own matrix.

    Every group multiplies all rows, with the rows of other groups masked to zero; the products are
    summed, or stacked where the contracting dimension is grouped. Groups along a batch dimension
    have no effect.
    """
    numbers = op["ragged_dot_dimension_numbers"]

    def dims(name: str) -> list[int]:
        return [int(dim) for dim in numbers.get(f"{name}_dimensions", [])]

    left, right, sizes = conversion.tensors(op)
    batch = dims("lhs_batching"), dims("rhs_batching")
    contracted = dims("lhs_contracting"), dims("rhs_contracting")
    (ragged,) = dims("lhs_ragged")
    grouped = dims("rhs_group")
    result = element_of(op.results[0].type)
    if ragged in batch[0]:
        return product(conversion, left, right, Dimensions(batch, contracted), result)
    builder = conversion.builder
    members = _group_members(conversion, sizes, left, batch[0], ragged)
    zeros = conversion.filled_like(0, left)
    total: SSAValue | None = None
    parts: list[SSAValue] = []
    for place, member in enumerate(members):
        rows = builder.emit("where", [member, left, zeros], left.type)
        matrix, own = right, (batch[1], contracted[1])
        if grouped:
            (axis,) = grouped
            shape = shape_of(right.type)
            matrix = builder.slice_dim(right, axis, place, place + 1)
            matrix = builder.reshape(matrix, [*shape[:axis], *shape[axis + 1 :]])
            own = tuple([dim - (dim > axis) for dim in each] for each in own)
        found_dims = Dimensions((batch[0], own[0]), (contracted[0], own[1]))
        found = product(conversion, rows, matrix, found_dims, result)
        parts.append(builder.reshape(found, [1, *shape_of(found.type)]))
        total = found if total is None else builder.like("add", total, found)
    if total is None:
        return conversion.filled(0, shape_of(op.results[0].type), result)
    return builder.concat(parts, 0) if ragged in contracted[0] else total


def _group_members(
    conversion: Conversion, sizes: SSAValue, left: SSAValue, batch: Sequence[int], ragged: int
) -> list[SSAValue]:
    """For each group, a mask of the elements of `left` that belong to it."""
    builder = conversion.builder
    shape = shape_of(left.type)
    sizes = builder.typecast(sizes, i32)
    *groups_of, count = shape_of(sizes.type)
    if groups_of and groups_of != [shape[dim] for dim in batch]:
        raise ValueError(f"the sizes of groups have the shape {shape_of(sizes.type)}")
    ends = builder.like("cumsum", sizes, dim=len(groups_of))
    starts = builder.like("subtract", ends, sizes)
    line = [1] * len(shape)
    line[ragged] = shape[ragged]
    rows = conversion.constant(np.arange(shape[ragged], dtype=np.int32).reshape(line), i32)
    rows = conversion.broadcast_to(rows, shape)
    extents = [1] * len(shape)
    for dim, size in zip(batch, groups_of, strict=False):
        extents[dim] = size
    order = sorted(range(len(groups_of)), key=lambda place: batch[place])
    found: list[SSAValue] = []
    for place in range(count):
        bounds: list[SSAValue] = []
        for values in (starts, ends):
            bound = builder.slice_dim(values, len(groups_of), place, place + 1)
            bound = builder.reshape(bound, groups_of)
            bound = builder.reshape(builder.permute(bound, order), extents)
            bounds.append(conversion.broadcast_to(bound, shape))
        after = builder.like("ge", rows, bounds[0], element=i1)
        before = builder.like("lt", rows, bounds[1], element=i1)
        found.append(builder.like("logical_and", after, before))
    return found


def _dot(conversion: Conversion, op: StableHLOOp) -> Value:
    rank = len(shape_of(op.operands[0].type))
    return _product(conversion, op, Dimensions(([], []), ([rank - 1], [0])))


def _product(conversion: Conversion, op: StableHLOOp, dims: Dimensions) -> Value:
    element = element_of(op.results[0].type)
    result = part_element(element)
    is_highest = all(
        str(each).upper().rstrip(">").endswith("HIGHEST")
        for each in op.get("precision_config", op.get("precision")) or ["DEFAULT"]
    )

    def multiply(left: SSAValue, right: SSAValue) -> SSAValue:
        if is_highest and (found := _exact_product(conversion, left, right, dims)) is not None:
            return conversion.builder.typecast(found, result)
        return product(conversion, left, right, dims, result)

    left, right = conversion.values(op)
    return _bilinear(multiply, conversion, left, right)


_MOST_EXACT = 64**3
"""Limit on the products of a matmul that are computed one by one, with padding to tiles."""


def _exact_product(
    conversion: Conversion, left: SSAValue, right: SSAValue, dims: Dimensions
) -> SSAValue | None:
    """Product of small float32 tensors in full precision; None for others.

    The matrix engine cuts operands to TF32, which no user of HIGHEST expects: inverses, solutions
    of equations and exponentials of matrices in jax ask for it.
    """
    if not all(isinstance(element_of(each.type), Float32Type) for each in (left, right)):
        return None
    sizes: list[tuple[list[int], list[int]]] = []
    moved: list[SSAValue] = []
    for side, value in enumerate((left, right)):
        shape = shape_of(value.type)
        used = [*dims.batch[side], *dims.contracted[side]]
        free = [axis for axis in range(len(shape)) if axis not in used]
        inner = [*free, *dims.contracted[side]] if side == 0 else [*dims.contracted[side], *free]
        moved.append(conversion.builder.permute(value, [*dims.batch[side], *inner]))
        sizes.append(([shape[axis] for axis in dims.batch[side]], [shape[axis] for axis in free]))
    (batch, rows), (_, columns) = sizes
    count = prod(shape_of(left.type)[axis] for axis in dims.contracted[0])
    padded = prod(whole_tiles(prod(each)) for each in (rows, columns))
    if not 0 < prod(batch) * count * padded <= _MOST_EXACT:
        return None
    build = conversion.builder
    first = Matrix(build, build.reshape(moved[0], [prod(batch), prod(rows), count]))
    second = Matrix(build, build.reshape(moved[1], [prod(batch), count, prod(columns)]))
    return (first @ second).reshape([*batch, *rows, *columns]).value


def product(
    conversion: Conversion, left: SSAValue, right: SSAValue, dims: Dimensions, result: Attribute
) -> SSAValue:
    """Product over the given dimensions: a matmul if their order allows, else a dot_general."""
    builder = conversion.builder
    shapes = shape_of(left.type), shape_of(right.type)
    batch = len(dims.batch[0])
    leading = all(side == list(range(batch)) for side in dims.batch)
    ranks = [len(shape) for shape in shapes]
    fits = leading and len(dims.contracted[0]) == 1 and ranks[1] == batch + 2
    left_dim = dims.contracted[0][0] if fits else 0
    if fits and (
        (ranks[0] == batch + 2 and left_dim >= batch)
        or (batch == 0 and ranks[0] > 2 and left_dim == ranks[0] - 1)
    ):
        right_dim = dims.contracted[1][0]
        transpose_a = left_dim != ranks[0] - 1
        transpose_b = right_dim != batch
        rows = [size for axis, size in enumerate(shapes[0]) if axis >= batch and axis != left_dim]
        columns = shapes[1][batch] if transpose_b else shapes[1][batch + 1]
        return builder.emit(
            "matmul",
            [left, right],
            tensor_type(result, [*shapes[0][:batch], *rows, columns]),
            transpose_a=transpose_a,
            transpose_b=transpose_b,
        )
    shape = [shapes[0][axis] for axis in dims.batch[0]]
    for side in range(2):
        used = dims.batch[side] + dims.contracted[side]
        shape += [size for axis, size in enumerate(shapes[side]) if axis not in used]
    return builder.emit(
        "dot_general",
        [left, right],
        tensor_type(result, shape),
        batch_dims_lhs=dims.batch[0],
        batch_dims_rhs=dims.batch[1],
        contract_dims_lhs=dims.contracted[0],
        contract_dims_rhs=dims.contracted[1],
    )


def _einsum(conversion: Conversion, op: StableHLOOp) -> Value:
    """Einsum of two operands; labels that the result lacks are summed."""
    config = str(op.get("config", op.get("einsum_config", "")))
    inputs, _, output = config.replace(" ", "").partition("->")
    sides = inputs.split(",")
    if len(sides) != 2 or not output or not set(config) <= set(string.ascii_letters + ",-> "):
        raise ValueError(f"the equation '{config}' is not supported")
    values = conversion.tensors(op)
    builder = conversion.builder
    for index, other in ((0, 1), (1, 0)):
        alone = [label for label in sides[index] if label not in sides[other] + output]
        if alone:
            axes = [sides[index].index(label) for label in alone]
            values[index] = builder.reduce("sum", values[index], axes, keep_dim=False)
            sides[index] = "".join(label for label in sides[index] if label not in alone)
    both = [label for label in sides[0] if label in sides[1]]
    batch = [label for label in both if label in output]
    contracted = [label for label in both if label not in output]
    dims = Dimensions(
        ([sides[0].index(x) for x in batch], [sides[1].index(x) for x in batch]),
        ([sides[0].index(x) for x in contracted], [sides[1].index(x) for x in contracted]),
    )
    found = product(conversion, values[0], values[1], dims, element_of(op.results[0].type))
    labels = batch + [x for side in sides for x in side if x not in both]
    return builder.permute(found, [labels.index(label) for label in output])


def _unary_einsum(conversion: Conversion, op: StableHLOOp) -> Value:
    config = str(op.get("config", op.get("einsum_config", "")))
    labels, _, output = config.replace(" ", "").partition("->")
    (value,) = conversion.tensors(op)
    axes = [axis for axis, label in enumerate(labels) if label not in output]
    if axes:
        value = conversion.builder.reduce("sum", value, axes, keep_dim=False)
    kept = [label for label in labels if label in output]
    return conversion.builder.permute(value, [kept.index(label) for label in output])


# Convolutions


@dataclass(frozen=True)
class Window:
    """Window of a convolution along each spatial dimension."""

    strides: list[int]
    padding: list[tuple[int, int]]
    lhs_dilation: list[int]
    rhs_dilation: list[int]
    reversed_: list[bool]


def _window(op: StableHLOOp, rank: int) -> Window:
    ones = [1] * rank
    padding = np.asarray(op.get("padding", [[0, 0]] * rank)).reshape(rank, 2)
    reversal = op.get("window_reversal")
    flags = [] if reversal is None else [bool(each) for each in np.asarray(reversal).flat]
    return Window(
        factors(op, "window_strides", rank, ones),
        [(int(low), int(high)) for low, high in padding],
        factors(op, "lhs_dilation", rank, ones),
        factors(op, "rhs_dilation", rank, ones),
        flags * (rank if len(flags) == 1 else 1) or [False] * rank,
    )


def _dynamic_convolution(conversion: Conversion, op: StableHLOOp) -> Value:
    """Convolution whose padding operand must be constant."""
    known = conversion.known(conversion.value(op.operands[2]))
    if known is None:
        raise ValueError("the padding of a convolution has to be constant")
    op.given["padding"] = known
    return _convolution(conversion, op)


def _convolution(conversion: Conversion, op: StableHLOOp) -> Value:
    """Normalizes layouts to (batch, spatial, channel) images and (output, input, spatial)
    kernels."""
    numbers: dict[str, list[str]] = _named(op["dimension_numbers"])
    left, right = conversion.values(op)[:2]
    element = part_element(element_of(op.results[0].type))
    shape = shape_of(op.results[0].type)
    if 0 in shape and not isinstance(left, Complex):
        # The kernel fits at no position.
        _expect_sizes(op, numbers, shape)
        return conversion.filled(0, shape, element)

    def multiply(image: SSAValue, kernel: SSAValue) -> SSAValue:
        return convolved(conversion, op, image, kernel, numbers, element)

    return _bilinear(multiply, conversion, left, right)


def _expect_sizes(op: StableHLOOp, numbers: dict[str, list[str]], found: Sequence[int]) -> None:
    """Raises ValueError unless a convolution's result has the given shape."""
    image, kernel = (
        dict(zip(numbers[name], shape_of(operand.type), strict=True))
        for name, operand in zip(("input", "kernel"), op.operands[:2], strict=True)
    )
    window = _window(op, len(found) - 2)
    sizes = {"b": image["b"] // max(int(op.get("batch_group_count", 1)), 1), "f": kernel["o"]}
    for axis, (low, high) in enumerate(window.padding):
        size, taps = image[str(axis)], kernel[str(axis)]
        extent = low + high + ((size - 1) * window.lhs_dilation[axis] + 1 if size else 0)
        reach = (taps - 1) * window.rhs_dilation[axis] + 1 if taps else 0
        fits = 0 < extent and reach <= extent
        sizes[str(axis)] = (extent - reach) // window.strides[axis] + 1 if fits else 0
    expected = [sizes[name] for name in numbers["output"]]
    if expected != list(found):
        raise ValueError(f"a convolution has a result of shape {expected}, found {list(found)}")


def _named(numbers: dict[str, object]) -> dict[str, list[str]]:
    """Dimension labels, such as `[b, 0, 1, f]`, of each tensor from either attribute form."""
    if "input" in numbers:
        return {key: list(value) for key, value in numbers.items()}  # pyright: ignore
    found: dict[str, list[str]] = {}
    for key, first, second in (
        ("input", "batch", "feature"),
        ("kernel", "output_feature", "input_feature"),
        ("output", "batch", "feature"),
    ):
        spatial: list[int] = numbers[f"{key}_spatial_dimensions"]  # pyright: ignore
        names = {numbers[f"{key}_{first}_dimension"]: first[0],
                 numbers[f"{key}_{second}_dimension"]: second[0]}  # fmt: skip
        names |= {dim: str(index) for index, dim in enumerate(spatial)}
        found[key] = [names[dim] for dim in range(len(spatial) + 2)]
    return found


def convolved(
    conversion: Conversion,
    op: StableHLOOp,
    image: SSAValue,
    kernel: SSAValue,
    numbers: dict[str, list[str]],
    result: Attribute,
) -> SSAValue:
    """Convolution of two real tensors."""
    builder = conversion.builder
    rank = len(numbers["input"]) - 2
    window = _window(op, rank)
    groups = int(op.get("feature_group_count", 1))
    batches = int(op.get("batch_group_count", 1))
    if min(groups, batches) < 1:
        raise ValueError(f"counts of groups are positive, found {groups} and {batches}")
    spatial = [str(axis) for axis in range(rank)]
    image = builder.permute(image, [numbers["input"].index(x) for x in ["b", *spatial, "f"]])
    kernel = builder.permute(kernel, [numbers["kernel"].index(x) for x in ["o", "i", *spatial]])
    if not isinstance(element_of(image.type), AnyFloat):
        image, kernel = builder.typecast(image, f32), builder.typecast(kernel, f32)
    flipped = [2 + axis for axis in range(rank) if window.reversed_[axis]]
    transposed = _match_transposed(conversion, image, kernel, window, flipped, groups, batches)
    if transposed is not None:
        found = transposed
    else:
        if flipped:
            kernel = builder.like("reverse", kernel, dimensions=flipped)
        if batches > 1:
            image, groups = _batch_groups_to_channel_groups(conversion, image, batches), batches
        found = _plain(conversion, image, kernel, window, groups)
    order = ["b", *spatial, "f"]
    found = builder.permute(found, [order.index(x) for x in numbers["output"]])
    return builder.typecast(found, result)


def _batch_groups_to_channel_groups(
    conversion: Conversion, image: SSAValue, batches: int
) -> SSAValue:
    """Turns groups of batches into groups of channels."""
    builder = conversion.builder
    batch, *extents, channels = shape_of(image.type)
    image = builder.reshape(image, [batches, batch // batches, *extents, channels])
    rank = len(extents)
    image = builder.permute(image, [1, *range(2, 2 + rank), 0, 2 + rank])
    return builder.reshape(image, [batch // batches, *extents, batches * channels])


def _match_transposed(
    conversion: Conversion,
    image: SSAValue,
    kernel: SSAValue,
    window: Window,
    flipped: Sequence[int],
    groups: int,
    batches: int,
) -> SSAValue | None:
    """Matches a transposed convolution, whose images are dilated; None otherwise."""
    rank = len(window.strides)
    kernel_shape = shape_of(kernel.type)
    if rank != 2 or groups != 1 or batches != 1 or set(window.lhs_dilation) == {1}:
        return None
    if set(window.strides) != {1} or set(window.rhs_dilation) != {1}:
        return None
    padding: list[tuple[int, int]] = []
    for axis in range(rank):
        full = kernel_shape[2 + axis] - 1
        low, high = (full - width for width in window.padding[axis])
        if low < 0 or high < 0 or low < high:
            return None
        padding.append((low, high))
    # The library has output padding only after the image.
    extra = [low - high for low, high in padding]
    if any(e >= s for e, s in zip(extra, window.lhs_dilation, strict=True)):
        return None
    builder = conversion.builder
    batch, *extents, _ = shape_of(image.type)
    unflipped = [axis for axis in (2, 3) if axis not in flipped]
    if unflipped:
        kernel = builder.like("reverse", kernel, dimensions=unflipped)
    kernel = builder.permute(kernel, [1, 0, 2, 3])
    sizes = [
        (extent - 1) * stride - 2 * low + length - 1 + more + 1
        for extent, stride, (low, _), length, more in zip(
            extents, window.lhs_dilation, padding, kernel_shape[2:], extra, strict=True
        )
    ]
    low = [pair[0] for pair in padding]
    return builder.emit(
        "conv_transpose2d",
        [image, kernel],
        tensor_type(element_of(image.type), [batch, *sizes, kernel_shape[0]]),
        stride=window.lhs_dilation,
        padding=[*low, *low],
        dilation=[1, 1],
        output_padding=extra,
        groups=1,
    )


def _plain(
    conversion: Conversion, image: SSAValue, kernel: SSAValue, window: Window, groups: int
) -> SSAValue:
    """Convolution of one to three spatial dimensions; missing ones have size 1."""
    builder = conversion.builder
    rank = len(window.strides)
    padding = list(window.padding)
    zero = conversion.filled(0, [], element_of(image.type))
    negative = any(width < 0 for pair in padding for width in pair)
    uneven = rank == 3 and any(low != high for low, high in padding)
    dilated3 = rank == 3 and set(window.rhs_dilation) != {1}
    if set(window.lhs_dilation) != {1} or negative or uneven:
        low, high = ([0, *(pair[side] for pair in padding), 0] for side in range(2))
        gaps = [0, *(factor - 1 for factor in window.lhs_dilation), 0]
        image = padded(conversion, image, zero, low, high, gaps)
        padding = [(0, 0)] * rank
    if dilated3:
        gaps = [0, 0, *(factor - 1 for factor in window.rhs_dilation)]
        kernel = padded(conversion, kernel, zero, [0] * 5, [0] * 5, gaps)
    if rank > 3:
        raise ValueError(f"a convolution over {rank} dimensions is not supported")
    if rank == 3:
        return _volume(conversion, image, kernel, window.strides, padding, groups)
    missing = 2 - rank
    strides = [1] * missing + window.strides
    dilation = [1] * missing + window.rhs_dilation
    padding = [(0, 0)] * missing + padding
    batch, *extents, channels = shape_of(image.type)
    filters, inner, *lengths = shape_of(kernel.type)
    extents, lengths = [1] * missing + extents, [1] * missing + lengths
    image = builder.reshape(image, [batch, *extents, channels])
    kernel = builder.reshape(kernel, [filters, inner, *lengths])
    sizes = [
        (extent + low + high - (length - 1) * dilation_of_input - 1) // stride + 1
        for extent, (low, high), length, dilation_of_input, stride in zip(
            extents, padding, lengths, dilation, strides, strict=True
        )
    ]
    result = tensor_type(element_of(image.type), [batch, *sizes, filters])
    found = builder.emit(
        "conv2d",
        [image, kernel],
        result,
        stride=strides,
        padding=[padding[0][0], padding[1][0], padding[0][1], padding[1][1]],
        dilation=dilation,
        groups=groups,
    )
    return builder.reshape(found, [batch, *sizes[missing:], filters])


def _volume(
    conversion: Conversion,
    image: SSAValue,
    kernel: SSAValue,
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    groups: int,
) -> SSAValue:
    batch, *extents, _ = shape_of(image.type)
    filters, _, *lengths = shape_of(kernel.type)
    sizes = [
        (extent + 2 * low - length) // stride + 1
        for extent, (low, _), length, stride in zip(extents, padding, lengths, strides, strict=True)
    ]
    return conversion.builder.emit(
        "conv3d",
        [image, kernel],
        tensor_type(element_of(image.type), [batch, *sizes, filters]),
        stride=list(strides),
        padding=[low for low, _ in padding],
        groups=groups,
    )


RULES: dict[str, Rule] = {
    "convolution": _convolution,
    "dynamic_conv": _dynamic_convolution,
    "ragged_dot": _ragged_dot,
    "dot": _dot,
    "dot_general": _dot_general,
    "einsum": _einsum,
    "unary_einsum": _unary_einsum,
}
