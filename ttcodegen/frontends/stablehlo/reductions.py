"""Reductions, sorts and other operations with a body."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from xdsl.dialects.builtin import AnyFloat, IntegerType
from xdsl.ir import Attribute, Block, SSAValue

from ttcodegen.dialects.core.datatypes import (
    bf16,
    element_of,
    f32,
    i1,
    is_boolean,
    shape_of,
    tensor_type,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.frontends.stablehlo import complex_numbers
from ttcodegen.frontends.stablehlo.bodies import (
    NEUTRAL,
    block_of,
    chooser,
    reducer,
    sort_keys,
)
from ttcodegen.frontends.stablehlo.conversion import (
    Complex,
    Conversion,
    Results,
    Rule,
    Value,
)
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp, is_unsigned
from ttcodegen.ops.core.builder import OpBuilder

_MAX_FOLD = 1 << 14
"""Limit on the elements that an unrecognized reduction body folds."""
_ON_PAIRS = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum",
             "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}  # fmt: skip
_ON_BOOLEANS = {"and": "logical_and", "or": "logical_or", "xor": "logical_xor"}


def _reduce(conversion: Conversion, op: StableHLOOp) -> Results:
    count = len(op.operands) // 2
    dims = op.ints("dimensions")
    block = block_of(op)
    values = conversion.values(op)
    if count == 1 and isinstance(values[0], Complex):
        return _reduce_complex(conversion, block, values[0], values[1], dims)
    operands = conversion.tensors(op)
    rank = len(shape_of(operands[0].type))
    if len(set(dims)) != len(dims) or any(not 0 <= dim < rank for dim in dims):
        raise ValueError(f"{dims} are no dimensions of {shape_of(operands[0].type)}")
    shape = shape_of(operands[0].type)
    if any(shape[dim] == 0 for dim in dims):
        left = [size for axis, size in enumerate(shape) if axis not in dims]
        ones = [1] * len(left)
        return [
            conversion.broadcast_to(conversion.builder.reshape(initial, ones), left)
            for initial in operands[count:]
        ]
    kind = reducer(block) if count == 1 else None
    if kind is not None:
        found = reduced(conversion, kind, operands[0], operands[1], dims)
        if found is not None:
            return found
    if count == 2 and len(dims) == 1:
        places = _arg_extreme(conversion, block, operands, dims[0])
        if places is not None:
            return places
    return _fold(conversion, block, operands[:count], operands[count:], dims)


def _reduce_complex(
    conversion: Conversion, block: Block, value: Complex, initial: Value, dims: Sequence[int]
) -> Value:
    kind = reducer(block)
    if kind not in ("sum", "prod"):
        raise ValueError("only sums and products of complex numbers are supported")
    start = complex_numbers.as_complex(conversion, initial)
    if kind == "prod":
        return _complex_product(conversion, value, start, dims)
    real = reduced(conversion, "sum", value.real, start.real, dims)
    imag = reduced(conversion, "sum", value.imag, start.imag, dims)
    assert real is not None
    assert imag is not None
    return Complex(real, imag)


def _complex_product(
    conversion: Conversion, value: Complex, start: Complex, dims: Sequence[int]
) -> Value:
    """Product of complex numbers along dimensions, of one half by the other."""
    builder = conversion.builder
    shape = shape_of(value.real.type)
    left = [axis for axis in range(len(shape)) if axis not in dims]
    sizes = [shape[axis] for axis in left]
    ones = [1] * len(sizes)

    def each(change: Callable[[SSAValue], SSAValue], number: Complex) -> Complex:
        return Complex(change(number.real), change(number.imag))

    def factors(part: SSAValue) -> SSAValue:
        return builder.reshape(builder.permute(part, [*dims, *left]), [count, *sizes])

    def first(part: SSAValue) -> SSAValue:
        wide = conversion.broadcast_to(builder.reshape(part, ones), sizes)
        return builder.reshape(wide, [1, *sizes])

    def part(number: Complex, begin: int, end: int) -> Complex:
        return each(lambda value: builder.slice_dim(value, 0, begin, end), number)

    count = prod(shape[axis] for axis in dims)
    found, rest = each(factors, value), each(first, start)
    while count > 1:
        half = count // 2
        if count % 2:
            rest = complex_numbers.multiplied(conversion, rest, part(found, 2 * half, count))
        halves = part(found, 0, half), part(found, half, 2 * half)
        found, count = complex_numbers.multiplied(conversion, *halves), half
    found = complex_numbers.multiplied(conversion, found, rest)
    return each(lambda part: builder.reshape(part, sizes), found)


def neutral(kind: str, element: Attribute) -> float | int | None:
    """Neutral element of a reduction."""
    if isinstance(element, AnyFloat) or is_boolean(element):
        return NEUTRAL.get(kind)
    unsigned = is_unsigned(element)
    if not isinstance(element, IntegerType):
        return None
    bits: int = element.bitwidth
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    limits = {"max": low, "min": high, "sum": 0, "prod": 1, "or": 0, "xor": 0}
    return limits.get(kind, high if unsigned else -1)


def is_neutral(conversion: Conversion, kind: str, initial: SSAValue) -> bool:
    """Returns whether an initial value is the neutral element."""
    number = conversion.number(initial)
    if number is None:
        return False
    element = element_of(initial.type)
    if kind in ("max", "min") and isinstance(element, AnyFloat):
        # Some frontends start with the largest finite number.
        limit = 3e38 if element.bitwidth >= 16 and str(element) != "f16" else 65504.0
        return number <= -limit if kind == "max" else number >= limit
    return number == neutral(kind, element)


def reduced(
    conversion: Conversion, kind: str, value: SSAValue, initial: SSAValue, dims: Sequence[int]
) -> SSAValue | None:
    """Reduces dimensions by a known kind, without keeping them; None if TTIR has no op for it."""
    builder = conversion.builder
    element = element_of(value.type)
    shape = [size for axis, size in enumerate(shape_of(value.type)) if axis not in dims]
    if not dims:
        found = value
    elif kind in ("and", "or"):
        if not is_boolean(element):
            return None
        found = builder.reduce(f"reduce_{kind}", value, dims, keep_dim=False)
    elif kind == "xor":
        return None
    elif kind == "prod":
        found = _product(conversion, value, dims)
    else:
        found = builder.reduce(kind, value, dims, keep_dim=False)
    if is_neutral(conversion, kind, initial):
        return found
    start = conversion.broadcast_to(builder.reshape(initial, [1] * len(shape)), shape)
    name = _ON_BOOLEANS[kind] if is_boolean(element) else _ON_PAIRS[kind]
    return builder.emit(name, [found, start], found.type)


def _product(conversion: Conversion, value: SSAValue, dims: Sequence[int]) -> SSAValue:
    """Product over one dimension after the other: the library reduces along one, or along all."""
    builder = conversion.builder
    if len(dims) == len(shape_of(value.type)):
        return builder.reduce("prod", value, dims, keep_dim=False)
    for dim in sorted(dims, reverse=True):
        value = builder.reduce("prod", value, [dim], keep_dim=False)
    return value


def _is_iota(conversion: Conversion, value: SSAValue, dim: int) -> bool:
    """Returns whether each element is its index along the dimension."""
    owner = value.owner
    if isinstance(owner, CatalogueOp) and owner.name == "ttir.arange":
        return owner.parameter("arange_dimension") == dim and (
            owner.parameter("start"),
            owner.parameter("step"),
        ) == (0, 1)
    known = conversion.known(value)
    if known is None and isinstance(owner, CatalogueOp) and owner.name == "ttir.broadcast":
        # Looks through broadcasts, which may be too large to fold.
        source = conversion.known(owner.operands[0])
        if source is not None and source.shape[dim] == shape_of(value.type)[dim]:
            known = source
    if known is None:
        return False
    wide = [-1 if axis == dim else 1 for axis in range(known.ndim)]
    places = np.asarray(range(known.shape[dim])).reshape(wide)
    return np.array_equal(known, np.broadcast_to(places, known.shape))


def _arg_extreme(
    conversion: Conversion, block: Block, operands: Sequence[SSAValue], dim: int
) -> list[Any] | None:
    """Argmax or argmin: extremes and their indices, None if the body is neither."""
    value, places, initial, _ = operands
    choice = chooser(block)
    if choice not in ("max", "min") or not _is_iota(conversion, places, dim):
        return None
    number = conversion.number(initial)
    element = element_of(value.type)
    if number is None or not (
        is_neutral(conversion, choice, initial) or number == neutral(choice, element)
    ):
        return None
    builder = conversion.builder
    best = builder.reduce(choice, value, [dim], keep_dim=False)
    return [best, _index_of_extreme(builder, choice, value, dim, element_of(places.type))]


def _index_of_extreme(
    builder: OpBuilder, choice: str, value: SSAValue, dim: int, index: Attribute
) -> SSAValue:
    """Index of the first extreme, or of the first NaN, along a dimension.

    The library ignores NaN in float32.
    """
    element = element_of(value.type)
    shape = shape_of(value.type)
    result = tensor_type(index, [size for axis, size in enumerate(shape) if axis != dim])

    def first(searched: SSAValue) -> SSAValue:
        return builder.emit("argmax", [searched], result, dim_arg=[dim], keep_dim=False)

    if is_boolean(element):
        value = builder.typecast(value, f32)
        return first(builder.like("neg", value) if choice == "min" else value)
    if not isinstance(element, AnyFloat):
        # Inverting all bits reverses the order; negation would overflow for the lowest integer.
        return first(builder.like("bitwise_not", value) if choice == "min" else value)
    is_none = builder.typecast(builder.like("ne", value, value, element=i1), bf16)
    has_none = builder.typecast(builder.reduce("max", is_none, [dim], keep_dim=False), i1)
    found = first(builder.like("neg", value) if choice == "min" else value)
    return builder.emit("where", [has_none, first(is_none), found], result)


# Any body


def _fold(
    conversion: Conversion,
    block: Block,
    values: Sequence[SSAValue],
    initial: Sequence[SSAValue],
    dims: Sequence[int],
) -> Results:
    """Pairwise tree reduction by an arbitrary body.

    The order of evaluation is free (https://openxla.org/stablehlo/spec#reduce).
    """
    builder = conversion.builder
    found = list(values)
    rest = [axis for axis in range(len(shape_of(values[0].type))) if axis not in dims]
    kept = [shape_of(values[0].type)[axis] for axis in rest]
    length = 1
    for dim in dims:
        length *= shape_of(values[0].type)[dim]
    if length > _MAX_FOLD:
        raise ValueError(f"the body is no known reduction, and there are {length} elements")
    found = [
        builder.reshape(builder.permute(value, [*dims, *rest]), [length, *kept]) for value in values
    ]
    while length > 1:
        half = length // 2
        begins = [[start] + [0] * len(kept) for start in (0, 1)]
        ends = [2 * half, *kept]
        step = [2] + [1] * len(kept)
        pairs = [[builder.slice(value, begin, ends, step) for value in found] for begin in begins]
        joined = applied(conversion, block, [*pairs[0], *pairs[1]])
        if length % 2:
            last = [builder.slice_dim(value, 0, length - 1, length) for value in found]
            joined = [
                builder.concat([one, more], 0) for one, more in zip(joined, last, strict=True)
            ]
        found, length = joined, (length + 1) // 2
    starts = [
        conversion.broadcast_to(builder.reshape(value, [1] * len(kept)), kept) for value in initial
    ]
    if length == 0:
        return list(starts)
    found = [builder.reshape(value, kept) for value in found]
    return list(applied(conversion, block, [*starts, *found]))


def applied(conversion: Conversion, block: Block, operands: Sequence[SSAValue]) -> list[SSAValue]:
    """Applies a scalar body to tensors of one shape."""
    shape = shape_of(operands[0].type)
    with conversion.lifted(shape):
        found = conversion.run(block, list(operands))
    results: list[SSAValue] = []
    for value in found:
        if not isinstance(value, SSAValue):
            raise ValueError("a body of complex numbers is not supported here")
        if shape_of(value.type) != shape:
            value = conversion.broadcast_to(
                conversion.builder.reshape(value, [1] * len(shape)), shape
            )
        results.append(value)
    return results


def _map(conversion: Conversion, op: StableHLOOp) -> Results:
    return list(applied(conversion, block_of(op), conversion.tensors(op)))


# Sorting


def _sort(conversion: Conversion, op: StableHLOOp) -> Results:
    operands = conversion.tensors(op)
    rank = len(shape_of(operands[0].type))
    dim = int(op.get("dimension", -1))
    if not -rank <= dim < rank:
        raise ValueError(f"there is no dimension {dim} in a tensor of rank {rank}")
    dim %= rank
    keys = sort_keys(block_of(op))
    if keys is None:
        raise CompileError(
            "'stablehlo.sort': the comparator is no order of one operand after the other",
            remedy="compare elements of the operands themselves; pass other sort keys as "
            "separate operands",
        )
    builder = conversion.builder
    stable = bool(op.get("is_stable", False)) or len(keys) > 1
    index: SSAValue | None = None
    ordered: dict[int, SSAValue] = {}
    # The last key first: what it orders stays where later ones find nothing to choose.
    for key, descending in reversed(keys):
        searched = operands[key]
        if index is not None:
            searched = _taken(conversion, searched, index, dim)
        values, places = _sorted(conversion, searched, dim, descending, stable)
        index = places if index is None else _taken(conversion, index, places, dim)
        ordered = {key: values}
    assert index is not None
    results: list[Value] = []
    for number, operand in enumerate(operands):
        if number in ordered:
            results.append(builder.typecast(ordered[number], element_of(operand.type)))
        elif _is_iota(conversion, operand, dim):
            results.append(builder.typecast(index, element_of(operand.type)))
        else:
            results.append(_taken(conversion, operand, index, dim))
    return results


def _sorted(
    conversion: Conversion, value: SSAValue, dim: int, descending: bool, stable: bool
) -> tuple[SSAValue, SSAValue]:
    builder = conversion.builder
    if is_boolean(element_of(value.type)):
        value = builder.typecast(value, f32)
    i32 = IntegerType(32)
    made = builder.emit_op(
        "sort",
        [value],
        [value.type, tensor_type(i32, shape_of(value.type))],
        dim=dim,
        descending=descending,
        stable=stable,
    )
    return made.results[0], made.results[1]


def _taken(conversion: Conversion, value: SSAValue, index: SSAValue, dim: int) -> SSAValue:
    """Gathers elements along a dimension."""
    element = element_of(value.type)
    builder = conversion.builder
    if is_boolean(element):
        found = _taken(conversion, builder.typecast(value, f32), index, dim)
        return builder.typecast(found, i1)
    result = tensor_type(element, shape_of(index.type))
    return builder.emit("gather", [value, index], result, dim=dim)


def _top_k(conversion: Conversion, op: StableHLOOp) -> list[Value]:
    """Top-k of the last dimension in descending order, with indices."""
    return _selected(conversion, op, -1, int(op["k"]), bool(op.get("largest", True)))


def _selected(
    conversion: Conversion, op: StableHLOOp, dim: int, k: int, largest: bool
) -> list[Value]:
    (value,) = conversion.tensors(op)[:1]
    shape = list(shape_of(value.type))
    shape[dim] = k
    types = [tensor_type(element_of(result.type), shape) for result in op.results]
    made = conversion.builder.emit_op(
        "topk", [value], types, k=k, dim=dim, largest=largest, sorted=True
    )
    return list(made.results)


def approx_top_k(
    conversion: Conversion, op: StableHLOOp, options: Mapping[str, Any], comparator: Block
) -> Results:
    """jax's custom call `ApproxTopK` (`lax.approx_max_k`), computed exactly.

    Operands are a tensor, its element indices and initial values; the comparator gives the order.
    Raises CompileError unless it orders by the first operand.
    """
    value, places = conversion.tensors(op)[:2]
    rank = len(shape_of(value.type))
    dim = int(options.get("reduction_dim", rank - 1)) % rank
    keys = sort_keys(comparator)
    if keys is None or [key for key, _ in keys] != [0] or not _is_iota(conversion, places, dim):
        raise CompileError(
            "the custom call '@ApproxTopK' does not select the largest or smallest elements of its "
            "first operand, and their indices",
            op,
            remedy="use jax.lax.approx_max_k, approx_min_k or top_k",
        )
    k = shape_of(op.results[0].type)[dim]
    return _selected(conversion, op, dim, k, keys[0][1])


RULES: dict[str, Rule] = {
    "map": _map,
    "reduce": _reduce,
    "sort": _sort,
    "top_k": _top_k,
    "topk": _top_k,
}
