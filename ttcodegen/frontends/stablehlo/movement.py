"""Creation and data movement ops, random numbers included."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import (
    DataType,
    element_of,
    elements,
    f32,
    i1,
    numpy_name,
    shape_of,
    tensor_type,
)
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.frontends.stablehlo import complex_numbers
from ttcodegen.frontends.stablehlo.conversion import Complex, Conversion, Rule, Value
from ttcodegen.frontends.stablehlo.custom_calls import cached
from ttcodegen.frontends.stablehlo.reading.operations import (
    StableHLOOp,
    is_complex,
    like_result,
    numpy_dtype,
    part_element,
)
from ttcodegen.frontends.translation import clamped_indices

# Ops that create or move elements, and compute none.

i32 = DataType.INT32.element_type

Move = Callable[[Conversion, StableHLOOp, Sequence[SSAValue]], SSAValue]


def moving(move: Move, data: int | None = 1) -> Rule:
    """Makes a rule that applies a data movement op to both parts of complex values.

    `data` is the number of leading operands with elements, the others are indices or sizes; None if
    all hold elements.
    """

    def rule(conversion: Conversion, op: StableHLOOp) -> Value:
        values = conversion.values(op)
        count = len(values) if data is None else data
        if not any(isinstance(value, Complex) for value in values[:count]):
            return move(conversion, op, conversion.tensors(op))
        others = [conversion.tensor(operand) for operand in op.operands[count:]]
        real, imag = complex_numbers.both(conversion, values[:count])
        return Complex(
            move(conversion, op, [*real, *others]), move(conversion, op, [*imag, *others])
        )

    return rule


def static_shape(conversion: Conversion, op: StableHLOOp, value: SSAValue | None) -> list[int]:
    """Returns the result's shape from its type or a constant operand.

    Raises ValueError if it is dynamic.
    """
    declared = list(shape_of(op.results[0].type))
    known = conversion.known(value) if value is not None else None
    if all(size >= 0 for size in declared):
        if known is not None and [int(size) for size in known.flat] != declared:
            raise ValueError(f"the shape is {known.tolist()}, and that of the result {declared}")
        return declared
    if known is None:
        raise ValueError("a tensor whose size is only known at run time is not supported")
    return [int(size) for size in known.flat]


# Making


def _constant(conversion: Conversion, op: StableHLOOp) -> Value:
    value = op.properties.get("value", op.attributes.get("value"))
    if not isinstance(value, DenseIntOrFPElementsAttr):
        raise ValueError("a constant needs elements")
    type_ = op.results[0].type
    shape = shape_of(type_)
    given = cast("DenseIntOrFPElementsAttr[Any]", value).type
    if shape_of(given) != shape or element_of(given) != element_of(type_):
        raise ValueError(f"'{op.name}': the value is of type {given}, the result of {type_}")
    if is_complex(type_):
        return _complex_constant(conversion, cast("DenseIntOrFPElementsAttr[Any]", value), type_)
    element = element_of(type_)
    made = elements(element, shape, cast("Any", value).data.data)
    return conversion.builder.emit("constant", [], tensor_type(element, shape), value=made)


def _complex_constant(
    conversion: Conversion, value: DenseIntOrFPElementsAttr[Any], type_: Attribute
) -> Complex:
    part = part_element(element_of(type_))
    dtype = numpy_name(part)
    if dtype is None:
        raise ValueError(f"constants of type {part} are not supported")
    numbers = np.frombuffer(value.data.data, dtype=numpy_dtype(dtype)).reshape(-1, 2)
    shape = shape_of(type_)
    numbers = np.broadcast_to(numbers, [int(np.prod(shape)), 2])
    return Complex(
        *(conversion.constant(numbers[:, index].reshape(shape), part) for index in range(2))
    )


def _constant_like(conversion: Conversion, op: StableHLOOp) -> Value:
    like = op.results[0].type
    return conversion.filled(op["value"], shape_of(like), element_of(like))


def _iota(conversion: Conversion, op: StableHLOOp) -> Value:
    shape = static_shape(conversion, op, conversion.tensor(op.operands[0]) if op.operands else None)
    return iota(conversion, shape, int(op.get("iota_dimension", op.get("dim", 0))),
                element_of(op.results[0].type))  # fmt: skip


def iota(conversion: Conversion, shape: Sequence[int], dim: int, element: Attribute) -> Value:
    """Index of each element along a dimension."""
    if not 0 <= dim < len(shape):
        raise ValueError(f"there is no dimension {dim} in the shape {list(shape)}")
    if complex_numbers.is_complex_element(element):
        part = part_element(element)
        return complex_numbers.as_complex(conversion, iota(conversion, shape, dim, part))
    builder = conversion.builder
    if element == i1:
        if shape[dim] > 2:
            raise ValueError("booleans count to 1 only")
        return builder.typecast(iota(conversion, shape, dim, i32), i1)  # pyright: ignore
    return builder.emit(
        "arange",
        [],
        tensor_type(element, shape),
        start=0,
        end=shape[dim],
        step=1,
        arange_dimension=dim,
    )


# Shapes


def _reshape(conversion: Conversion, op: StableHLOOp, values: Sequence[SSAValue]) -> SSAValue:
    shape = static_shape(conversion, op, values[1] if len(values) > 1 else None)
    return conversion.builder.reshape(values[0], shape)


def _broadcast_in_dim(
    conversion: Conversion, op: StableHLOOp, values: Sequence[SSAValue]
) -> SSAValue:
    shape = static_shape(conversion, op, values[1] if len(values) > 1 else None)
    dims = op.get("dims")
    dims = op.ints("broadcast_dimensions", []) if dims is None else [int(d) for d in dims]
    return broadcast_in_dim(conversion, values[0], dims, shape)


def broadcast_in_dim(
    conversion: Conversion, value: SSAValue, dims: Sequence[int], shape: Sequence[int]
) -> SSAValue:
    """Maps dimension i of `value` to `dims[i]` of the result and repeats it along the others."""
    found = shape_of(value.type)
    if len(dims) != len(found) or any(not 0 <= dim < len(shape) for dim in dims):
        raise ValueError(f"dimensions {list(dims)} do not name those of {found}")
    if len(set(dims)) != len(dims):
        raise ValueError(f"dimensions {list(dims)} name one of the result twice")
    builder = conversion.builder
    order = sorted(range(len(dims)), key=lambda axis: dims[axis])
    value = builder.permute(value, order)
    wide = [1] * len(shape)
    for axis in range(len(dims)):
        wide[dims[axis]] = found[axis]
    if any(size not in (1, wanted) for size, wanted in zip(wide, shape, strict=True)):
        raise ValueError(f"{found} cannot be broadcast to {tuple(shape)} along {list(dims)}")
    number = conversion.number(value) if tuple(shape) != found else None
    if number is not None:
        return conversion.filled(number, shape, element_of(value.type))
    return conversion.broadcast_to(builder.reshape(value, wide), shape)


def _broadcast(conversion: Conversion, op: StableHLOOp, values: Sequence[SSAValue]) -> SSAValue:
    """Adds leading dimensions."""
    sizes = op.get("sizes")
    sizes = op.ints("broadcast_sizes") if sizes is None else [int(size) for size in sizes]
    found = shape_of(values[0].type)
    dims = range(len(sizes), len(sizes) + len(found))
    return broadcast_in_dim(conversion, values[0], list(dims), [*sizes, *found])


def _transpose(conversion: Conversion, op: StableHLOOp, values: Sequence[SSAValue]) -> SSAValue:
    dims = op.get("dims")
    order = op.ints("permutation") if dims is None else [int(dim) for dim in dims]
    return conversion.builder.permute(values[0], order)


def _concatenate(conversion: Conversion, op: StableHLOOp, values: Sequence[SSAValue]) -> SSAValue:
    dim = int(op.get("dimension", op.get("dim", 0)))
    kept = [value for value in values if shape_of(value.type)[dim] > 0] or list(values[:1])
    return conversion.builder.concat(kept, dim)


def _reverse(conversion: Conversion, op: StableHLOOp, values: Sequence[SSAValue]) -> SSAValue:
    dims = op.get("dims")
    dims = op.ints("dimensions") if dims is None else [int(dim) for dim in dims]
    return conversion.builder.like("reverse", values[0], dimensions=dims) if dims else values[0]


# Parts


def _slice(conversion: Conversion, op: StableHLOOp, values: Sequence[SSAValue]) -> SSAValue:
    value = values[0]
    begins, ends = op.ints("start_indices", []), op.ints("limit_indices", [])
    steps = op.ints("strides", [1] * len(begins))
    return conversion.builder.slice(value, begins, ends, steps)


def _clamped_starts(
    conversion: Conversion, starts: Sequence[SSAValue], shape: Sequence[int], sizes: Sequence[int]
) -> list[int | SSAValue]:
    """Start of a slice in each dimension, clamped to the tensor.

    An integer where it is known, else a one-element si32 tensor.
    """
    found: list[int | SSAValue] = []
    builder = conversion.builder
    for start, size, extent in zip(starts, shape, sizes, strict=True):
        room = size - extent
        if room < 0:
            raise ValueError(f"a slice of {extent} elements does not fit into {size}")
        number = conversion.number(start)
        if room == 0 or number is not None:
            found.append(min(max(int(number or 0), 0), room) if room else 0)
            continue
        found.append(clamped_indices(builder, builder.reshape(start, [1]), room))
    return found


def _single_starts(
    conversion: Conversion, operands: Sequence[SSAValue], rank: int
) -> list[SSAValue]:
    """Start of a slice per dimension, from scalar operands or from one tensor."""
    if len(operands) == rank and all(shape_of(each.type) == () for each in operands):
        return list(operands)
    if len(operands) != 1 or shape_of(operands[0].type) != (rank,):
        raise ValueError(f"a slice of a tensor of rank {rank} needs {rank} starts")
    builder = conversion.builder
    return [builder.slice(operands[0], [axis], [axis + 1]) for axis in range(rank)]


def _dynamic_slice(conversion: Conversion, op: StableHLOOp, values: Sequence[SSAValue]) -> SSAValue:
    value, builder = values[0], conversion.builder
    shape = shape_of(value.type)
    sizes = op.get("sizes")
    sizes = op.ints("slice_sizes") if sizes is None else [int(size) for size in sizes]
    starts = _single_starts(conversion, values[1:], len(shape))
    found = _clamped_starts(conversion, starts, shape, sizes)
    known = [start if isinstance(start, int) else None for start in found]
    begins = [0 if start is None else start for start in known]
    ends = [
        limit if start is None else start + size
        for start, size, limit in zip(known, sizes, shape, strict=True)
    ]
    value = builder.slice(value, begins, ends)
    if all(start is not None for start in known):
        return value
    # What is left to slice at indices that are only known at run time.
    parts = [
        start if not isinstance(start, int) else conversion.constant(np.asarray([0]), i32)
        for start in found
    ]
    first = builder.concat(parts, 0)
    extents = conversion.constant(np.asarray(sizes), i32)
    last = builder.like("add", first, extents)
    result = tensor_type(element_of(value.type), sizes)
    return builder.emit("slice_dynamic", [value, first, last], result, step=[1] * len(sizes))


def _dynamic_update_slice(
    conversion: Conversion, op: StableHLOOp, values: Sequence[SSAValue]
) -> SSAValue:
    value, update = values[:2]
    builder = conversion.builder
    shape, sizes = shape_of(value.type), shape_of(update.type)
    starts = _single_starts(conversion, values[2:], len(shape))
    found = _clamped_starts(conversion, starts, shape, sizes)
    if 0 in sizes:
        return value
    if cached(conversion, value, update, found):
        return value
    known = [start for start in found if isinstance(start, int)]
    if len(known) == len(found):
        return _update_static(conversion, value, update, known)
    moving_axes = [axis for axis, start in enumerate(found) if not isinstance(start, int)]
    outer = [axis for axis in range(len(shape)) if axis not in moving_axes]
    if any(sizes[axis] != shape[axis] for axis in outer):
        # First the part that is known, as a tensor of its own; then back to its position.
        begins = [start if isinstance(start, int) else 0 for start in found]
        ends = [
            begins[axis] + sizes[axis] if axis in outer else shape[axis]
            for axis in range(len(shape))
        ]
        inner = builder.slice(value, begins, ends)
        updated = _update_dynamic(conversion, inner, update, found, moving_axes)
        return _update_static(conversion, value, updated, begins)
    return _update_dynamic(conversion, value, update, found, moving_axes)


def _update_static(
    conversion: Conversion, value: SSAValue, update: SSAValue, begins: Sequence[int]
) -> SSAValue:
    """Writes `update` at a static position by slices and concats."""
    builder = conversion.builder
    shape, sizes = shape_of(value.type), shape_of(update.type)
    for axis in reversed(range(len(shape))):
        if sizes[axis] == shape[axis]:
            continue
        # The update already spans the later dimensions, which were completed before.
        low = [begins[a] if a < axis else 0 for a in range(len(shape))]
        high = [begins[a] + sizes[a] if a < axis else shape[a] for a in range(len(shape))]
        before = builder.slice(value, low, [*high[:axis], begins[axis], *high[axis + 1 :]])
        end = begins[axis] + sizes[axis]
        after = builder.slice(value, [*low[:axis], end, *low[axis + 1 :]], high)
        parts = [each for each in (before, update, after) if shape_of(each.type)[axis] > 0]
        update = builder.concat(parts, axis)
    return update


def _update_dynamic(
    conversion: Conversion,
    value: SSAValue,
    update: SSAValue,
    starts: Sequence[int | SSAValue],
    axes: Sequence[int],
) -> SSAValue:
    """Writes `update` at a position that is dynamic along `axes`."""
    builder = conversion.builder
    shape, sizes = shape_of(value.type), shape_of(update.type)
    if len(axes) == 1 and sizes[axes[0]] == 1:
        return _update_row(conversion, value, update, starts[axes[0]], axes[0])
    places = [start for start in starts if isinstance(start, SSAValue)]
    indices = builder.concat(places, 0)
    rank = len(shape)
    return builder.emit(
        "scatter",
        [value, builder.reshape(indices, [1, len(axes)]), builder.reshape(update, [1, *sizes])],
        value.type,
        update_window_dims=list(range(1, rank + 1)),
        scatter_dims_to_operand_dims=list(axes),
        index_vector_dim=1,
        indices_are_sorted=True,
        unique_indices=True,
    )


def _update_row(
    conversion: Conversion, value: SSAValue, row: SSAValue, place: int | SSAValue, axis: int
) -> SSAValue:
    """Writes one row at a dynamic position by an elementwise select.

    KV caches write one position per step, and a select moves no other data.
    """
    assert isinstance(place, SSAValue)
    builder = conversion.builder
    shape = shape_of(value.type)
    along = [size if a == axis else 1 for a, size in enumerate(shape)]
    counted = iota(conversion, along, axis, i32)
    assert isinstance(counted, SSAValue)
    here = builder.reshape(place, [1] * len(shape))
    chosen = builder.broadcasting("eq", counted, here, element=i1)
    return builder.emit("where", [chosen, row, value], value.type)


# Padding


def _pad(conversion: Conversion, op: StableHLOOp, values: Sequence[SSAValue]) -> SSAValue:
    value, fill = values[:2]
    names = (("low", "edge_padding_low"), ("high", "edge_padding_high"),
             ("interior", "interior_padding"))  # fmt: skip
    widths: list[list[int]] = []
    for index, (short, name) in enumerate(names):
        given = op.get(short, op.get(name))
        if given is None and len(values) > 2 + index:
            given = conversion.known(values[2 + index])
        if given is None:
            raise ValueError("padding that is only known at run time is not supported")
        widths.append([int(width) for width in np.asarray(given).flat])
    return padded(conversion, value, fill, *widths)


def padded(
    conversion: Conversion,
    value: SSAValue,
    fill: SSAValue,
    low: Sequence[int],
    high: Sequence[int],
    interior: Sequence[int],
) -> SSAValue:
    """Pads before, after and between elements; negative widths crop."""
    builder = conversion.builder
    number = conversion.number(fill)
    for axis, gap in enumerate(interior):
        if gap > 0 and shape_of(value.type)[axis] > 1:
            value = _dilated(conversion, value, fill, axis, gap)
    shape = shape_of(value.type)
    begins = [max(-width, 0) for width in low]
    ends = [size - max(-width, 0) for size, width in zip(shape, high, strict=True)]
    if any(begin > end for begin, end in zip(begins, ends, strict=True)):
        raise ValueError("padding cuts off more than there is")
    value = builder.slice(value, begins, ends)
    before, after = ([max(width, 0) for width in widths] for widths in (low, high))
    if not any(before) and not any(after):
        return value
    element = element_of(value.type)
    if number is not None and (isinstance(element, AnyFloat) or abs(number) < 2**24):
        padding = [width for pair in zip(before, after, strict=True) for width in pair]
        shape = [
            size + left + right
            for size, left, right in zip(shape_of(value.type), before, after, strict=True)
        ]
        return builder.emit(
            "pad", [value], tensor_type(element, shape), padding=padding, value=float(number)
        )
    for axis, (left, right) in enumerate(zip(before, after, strict=True)):
        parts = [value]
        for width, place in ((left, 0), (right, len(parts) + bool(left))):
            if width:
                edge = list(shape_of(value.type))
                edge[axis] = width
                parts.insert(place, _repeated(conversion, fill, edge))
        value = builder.concat(parts, axis)
    return value


def _repeated(conversion: Conversion, fill: SSAValue, shape: Sequence[int]) -> SSAValue:
    one = conversion.builder.reshape(fill, [1] * len(shape))
    return conversion.broadcast_to(one, shape)


def _dilated(
    conversion: Conversion, value: SSAValue, fill: SSAValue, axis: int, gap: int
) -> SSAValue:
    """Inserts `gap` elements of `fill` between elements along a dimension."""
    builder = conversion.builder
    shape = list(shape_of(value.type))
    split = [*shape[: axis + 1], 1, *shape[axis + 1 :]]
    filler = [*shape[: axis + 1], gap, *shape[axis + 1 :]]
    parts = [builder.reshape(value, split), _repeated(conversion, fill, filler)]
    wide = list(shape)
    wide[axis] = shape[axis] * (gap + 1)
    joined = builder.reshape(builder.concat(parts, axis + 1), wide)
    return builder.slice_dim(joined, axis, 0, wide[axis] - gap)


def _real_dynamic_slice(
    conversion: Conversion, op: StableHLOOp, values: Sequence[SSAValue]
) -> SSAValue:
    bounds = [conversion.known(value) for value in values[1:4]]
    found = [[int(n) for n in known.flat] for known in bounds if known is not None]
    if len(found) != 3:
        raise ValueError("bounds that are only known at run time are not supported")
    return conversion.builder.slice(values[0], *found)


def _dimension_size(conversion: Conversion, op: StableHLOOp) -> Value:
    dim = int(op.get("dim", op.get("dimension", 0)))
    size = shape_of(conversion.tensor(op.operands[0]).type)[dim]
    return conversion.constant(np.asarray(size), element_of(op.results[0].type))


def _set_dimension_size(conversion: Conversion, op: StableHLOOp) -> Value:
    dim = int(op.get("dim", op.get("dimension", 0)))
    value, size = conversion.tensors(op)
    if conversion.number(size) != shape_of(value.type)[dim]:
        raise ValueError("a tensor whose size is only known at run time is not supported")
    return value


def _tuple(conversion: Conversion, op: StableHLOOp) -> Value:
    return tuple(conversion.values(op))


def _element(conversion: Conversion, op: StableHLOOp) -> Value:
    found = conversion.value(op.operands[0])
    if not isinstance(found, tuple):
        raise ValueError("a tuple is needed")
    return found[int(op["index"])]


RULES: dict[str, Rule] = {
    "arith.constant": _constant,
    "broadcast": moving(_broadcast),
    "broadcast_in_dim": moving(_broadcast_in_dim),
    "concatenate": moving(_concatenate, None),
    "constant": _constant,
    "constant_like": _constant_like,
    "dynamic_broadcast_in_dim": moving(_broadcast_in_dim),
    "dynamic_iota": _iota,
    "dynamic_pad": moving(_pad, 2),
    "dynamic_reshape": moving(_reshape),
    "dynamic_slice": moving(_dynamic_slice),
    "dynamic_update_slice": moving(_dynamic_update_slice, 2),
    "get_dimension_size": _dimension_size,
    "get_tuple_element": _element,
    "iota": _iota,
    "pad": moving(_pad, 2),
    "real_dynamic_slice": moving(_real_dynamic_slice),
    "reshape": moving(_reshape),
    "reverse": moving(_reverse),
    "set_dimension_size": _set_dimension_size,
    "slice": moving(_slice),
    "transpose": moving(_transpose),
    "tuple": _tuple,
}


# Random numbers: those of the device, not the bits that XLA draws.


def uniform(
    conversion: Conversion,
    op: StableHLOOp,
    operands: Sequence[SSAValue],
    attributes: Mapping[str, Any],
) -> Value:
    """Uniform random numbers between two constant limits."""
    limits = [conversion.number(operand) for operand in operands[-2:]]
    low, high = (float(limit) if limit is not None else default
                 for limit, default in zip(limits, (0.0, 1.0), strict=True))  # fmt: skip
    type_ = like_result(op)
    return _emit_rand(conversion, shape_of(type_), element_of(type_), low, high)


def _emit_rand(
    conversion: Conversion,
    shape: Sequence[int],
    element: Attribute,
    low: float,
    high: float,
    seed: int = 0,
) -> SSAValue:
    """Uniform random numbers in [low, high)."""
    return conversion.builder.emit(
        "rand", [], tensor_type(element, shape), size=list(shape), low=low, high=high, seed=seed
    )


def _rng(conversion: Conversion, op: StableHLOOp) -> Value:
    """Uniform random numbers, or normal ones by the Box-Muller method."""
    low, high = (conversion.number(value) for value in conversion.tensors(op)[:2])
    if low is None or high is None:
        raise ValueError("random numbers need limits that are known")
    normal = "NORMAL" in str(op.get("distribution", op.get("rng_distribution", "UNIFORM"))).upper()
    type_ = op.results[0].type
    shape, element = shape_of(type_), element_of(type_)
    named = conversion.known(conversion.tensors(op)[2]) if len(op.operands) > 2 else None
    if named is not None and tuple(int(size) for size in named.flat) != shape:
        raise ValueError(f"the shape is {named.tolist()}, and that of the result {list(shape)}")
    builder = conversion.builder
    if not normal and isinstance(element, AnyFloat):
        return _emit_rand(conversion, shape, element, float(low), float(high))
    if not normal:
        drawn = _emit_rand(conversion, shape, f32, float(low), float(high))
        return builder.typecast(builder.like("floor", drawn), element)
    first, second = (_emit_rand(conversion, shape, f32, 2.0**-24, 1.0, seed) for seed in (1, 2))
    radius = builder.like("multiply", builder.like("log", first), conversion.filled(-2, shape, f32))
    angle = builder.like("multiply", second, conversion.filled(2 * np.pi, shape, f32))
    drawn = builder.like("multiply", builder.like("sqrt", radius), builder.like("cos", angle))
    drawn = builder.like("multiply", drawn, conversion.filled(high, shape, f32))
    drawn = builder.like("add", drawn, conversion.filled(low, shape, f32))
    return builder.typecast(drawn, element)


def _rng_bits(conversion: Conversion, op: StableHLOOp) -> list[Value]:
    """Random bits; the default algorithm may return any.

    Source: https://openxla.org/stablehlo/spec#rng_bit_generator
    """
    state = conversion.tensor(op.operands[0])
    type_ = op.results[1].type
    shape, element = shape_of(type_), element_of(type_)
    builder = conversion.builder
    drawn = (_emit_rand(conversion, shape, f32, 0.0, 2.0**16, seed) for seed in (1, 2))
    high, low = (builder.typecast(builder.like("floor", each), element) for each in drawn)
    width = conversion.filled(16, shape, element)
    return [state, builder.like("bitwise_or", builder.like("logical_left_shift", high, width), low)]


RANDOM_RULES: dict[str, Rule] = {"rng": _rng, "rng_bit_generator": _rng_bits}
