"""Gather and scatter along a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, element_of, f32, shape_of, si32, ui32
from ttcodegen.dialects.operations.attribute_kinds import ENUMERATOR, INTEGER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import MOST_BROADCAST_DIMS, OpBuilder
from ttcodegen.ops.core.calls import (
    NULLOPT,
    CppCalls,
    Text,
    attribute_,
    cpp_call,
    cpp_text,
    operand_,
)
from ttcodegen.ops.core.definition import (
    Call,
    Layout,
    OperandSpec,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    register,
)
from ttcodegen.ops.core.dimensions import (
    expect_element,
    expect_integers,
    expect_shape,
    normalized_dim,
)
from ttcodegen.ops.core.engine import places
from ttcodegen.ops.core.lowering import counted_from_front, cpu_call, dimension
from ttcodegen.ops.core.traits import CallKind, no_flops
from ttcodegen.ops.indexing import general_gather_scatter as slices_by_index
from ttcodegen.ops.indexing.general_gather_scatter import (
    GATHER_ATTRIBUTES,
    GENERAL_GATHER,
    GENERAL_SCATTER,
    SCATTER_ATTRIBUTES,
    is_general,
)
from ttcodegen.ops.movement.data_movement import MOVEMENT
from ttcodegen.ops.reduction.reduce import extreme_by_halves
from ttcodegen.ops.reduction.sorting import from_rows, rows_along

_DIM = attribute("dim", INTEGER)
_OPTIONAL_DIM = attribute("dim", INTEGER, None)


def _index_bound(op: CatalogueOp) -> int:
    """Returns the number of valid index values."""
    shape = op.shape("input")
    if is_general(op):
        return slices_by_index.slices_of(op).places
    dim: int = op.parameter("dim") % len(shape)
    return shape[dim]


def _verify_index(op: CatalogueOp, operands: Sequence[str]) -> None:
    """Raises VerifyException unless the operands fit into the input except along `dim`."""
    shape = op.shape("input")
    if op.parameter("dim") is None:
        raise VerifyException(f"{op.name} needs the attribute 'dim'")
    dim = normalized_dim(op, op.parameter("dim"), len(shape))
    for name in operands:
        found = op.shape(name)
        fits = len(found) == len(shape) and all(
            axis == dim or size <= limit
            for axis, (size, limit) in enumerate(zip(found, shape, strict=True))
        )
        if not fits:
            raise VerifyException(
                f"{op.name}: expected an operand '{name}' that is nowhere longer than {shape} but "
                f"in dimension {dim}, found {found}"
            )


def _grid(shape: Sequence[int], dim: int, index: Array) -> tuple[Array, ...]:
    """Returns the position that each element of `index` names: its own, except along `dim`."""
    grid = list(np.indices(tuple(shape), dtype=np.int64))
    grid[dim] = index.astype(np.int64)
    return tuple(grid)


# gather


def _verify_gather(op: CatalogueOp) -> None:
    """The result has an element of the input for each index, or with `slice_sizes` a slice."""
    if is_general(op):
        slices_by_index.verify_gather(op)
        return
    _verify_index(op, ["index"])
    expect_integers(op, "index")
    expect_element(op, "input")
    expect_shape(op, op.shape("index"))


def _gather(call: Call) -> Array:
    if call.attributes.get(GENERAL_GATHER) is not None:
        return slices_by_index.gather_slices(call)
    x, dim = call.array("input"), call["dim"]
    index = places(call.array("index"), x.shape[dim])
    return x[_grid(index.shape, dim % x.ndim, index)]


def gathered(builder: OpBuilder, value: SSAValue, index: SSAValue, dim: int) -> SSAValue:
    """Emits the library's gather along a dimension that is not negative.

    It supports ranks 2 to 4, along the last dimension or one exchanged with it
    (docs/library-rules.md); other ranks are reshaped to rows.
    """
    shape, wanted = shape_of(value.type), shape_of(index.type)
    if 2 <= len(shape) <= 4:
        result = TensorType(element_of(value.type), wanted)
        return builder.emit("gather", [value, index], result, dim=dim)
    ends = [size if axis == dim else wanted[axis] for axis, size in enumerate(shape)]
    value = builder.slice(value, [0] * len(shape), ends)
    rows, _, _ = rows_along(builder, value, dim)
    indices, permutation, moved = rows_along(builder, index, dim)
    result = TensorType(element_of(value.type), shape_of(indices.type))
    found = builder.emit("gather", [rows, indices], result, dim=1)
    return from_rows(builder, found, permutation, moved)


def _lower_gather(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    value, index = builder.operand(op, "input"), builder.operand(op, "index")
    return gathered(
        builder, value, builder.typecast(index, ui32), op.parameter("dim") % len(op.shape("input"))
    )


def _gather_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Gather with 32-bit indices from an input cropped to the indices, except along `dim`."""
    if is_general(op):
        return None
    value, index = builder.operand(op, "input"), builder.operand(op, "index")
    wanted, shape = op.result_shape, op.shape("input")
    dim: int = op.parameter("dim") % len(shape)
    ends = [size if axis == dim else wanted[axis] for axis, size in enumerate(shape)]
    has_32_bits = element_of(index.type) in (si32, ui32)
    element = element_of(value.type)
    if ends == list(shape) and has_32_bits and element == element_of(op.result_type):
        return None
    value = builder.slice(value, [0] * len(shape), ends)
    if not has_32_bits:
        index = builder.typecast(index, si32)
    value = builder.emit("gather", [value, index], TensorType(element, wanted), dim=dim)
    return builder.typecast(value, element_of(op.result_type))


register(
    TTIRDefinition(
        "ttir.gather",
        (operand("input"), operand("index", input_kind="index", places=_index_bound)),
        (_OPTIONAL_DIM, *GATHER_ATTRIBUTES),
        verify=_verify_gather,
        numpy=_gather,
        primitives=_gather_primitives,
        decompose=lambda builder, op: (
            slices_by_index.decompose_gather(builder, op) if is_general(op) else None
        ),
        lower=_lower_gather,
        cpu=cpu_call("indexing", dimension("dim")),
    )
)

# The library gathers narrow integers too, but cannot fill the padding of their tiles.
GATHERED = (DataType.BFLOAT16, DataType.FLOAT32, DataType.INT32, DataType.UINT32)


def _verify_library_gather(op: CatalogueOp) -> None:
    """The rank is at least 2; the result has an element of the input for each index."""
    rank = len(op.shape("input"))
    if rank < 2:
        raise VerifyException(f"{op.name}: the library takes no tensors of rank {rank}")
    _verify_index(op, ["index"])
    expect_integers(op, "index")
    expect_element(op, "input")
    expect_shape(op, op.shape("index"))


def _places_along(op: CatalogueOp) -> int:
    dim: int = op.parameter("dim")
    return op.shape("input")[dim]


register(
    TTNNDefinition(
        "ttnn.gather",
        (
            OperandSpec("input", data_types=GATHERED),
            OperandSpec(
                "index",
                data_types=(DataType.UINT32,),
                input_kind="index",
                places=_places_along,
            ),
        ),
        (_DIM,),
        verify=_verify_library_gather,
        numpy=_gather,
        cpp=cpp_call(
            "ttnn::gather",
            f"{MOVEMENT}/gather/gather.hpp",
            operand_("input"),
            attribute_("dim"),
            operand_("index"),
            lambda calls, op: Text("/*sparse_grad=*/false"),
            lambda calls, op: Text("/*memory_config=*/std::nullopt"),
        ),
        flops=no_flops,
        call_kind=CallKind.GATHER,
    )
)

# scatter

REDUCTIONS = ("invalid", "sum", "prod", "min", "max")
"""Reductions of colliding updates, by name; `invalid` keeps the last one."""


def _verify_scatter(op: CatalogueOp) -> None:
    """There is a source element for each index, or with `scatter_dims_to_operand_dims` a slice; the
    result has the shape of the input.
    """
    if is_general(op):
        slices_by_index.verify_scatter(op)
        _verify_reduction(op)
    else:
        _verify_elements(op)


def _verify_elements(op: CatalogueOp) -> None:
    """Verifies that there is a source element for each index."""
    _verify_index(op, ["index", "source"])
    expect_integers(op, "index")
    index, source = op.shape("index"), op.shape("source")
    if any(size > limit for size, limit in zip(index, source, strict=True)):
        raise VerifyException(
            f"{op.name}: expected a source that is nowhere shorter than the index {index}, "
            f"found {source}"
        )
    _verify_reduction(op)


def _verify_reduction(op: CatalogueOp) -> None:
    """Verifies the reduction of colliding updates and the result shape."""
    reduction = op.parameter("scatter_reduce_type").lower()
    if reduction not in REDUCTIONS:
        raise VerifyException(
            f"{op.name}: expected a scatter_reduce_type of {', '.join(REDUCTIONS)}, "
            f"found {reduction}"
        )
    expect_shape(op, op.shape("input"))


def _scatter(call: Call) -> Array:
    """Reference semantics of scatter; out-of-bounds updates are dropped."""
    result = call.array("input").copy()
    if call.attributes.get(GENERAL_SCATTER) is not None:
        named_places, source = slices_by_index.slices_to_scatter(call)
    else:
        index, source = call.array("index").astype(np.int64), call.array("source")
        dim = call["dim"] % result.ndim
        named = (index >= 0) & (index < result.shape[dim])
        named_places = tuple(axis[named] for axis in _grid(index.shape, dim, index))
        source = source[tuple(slice(size) for size in index.shape)].astype(result.dtype)[named]
    match call["scatter_reduce_type"].lower():
        case "sum":
            np.add.at(result, named_places, source)
        case "prod":
            np.multiply.at(result, named_places, source)
        case "min":
            np.minimum.at(result, named_places, source)
        case "max":
            np.maximum.at(result, named_places, source)
        case _:
            result[named_places] = source
    return result


def _scatter_on_cpu(op: CatalogueOp) -> dict[str, int | str]:
    reduction = op.parameter("scatter_reduce_type").lower()
    return {"dim": counted_from_front(op, "dim"), "reduce": reduction}


def _scatter_primitives(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Scatter along the last dimension with 32-bit indices and one element type.

    Rows without indices are padded with an out-of-range index.
    """
    if is_general(op):
        return None
    value, index, source = (builder.operand(op, n) for n in ("input", "index", "source"))
    shape, wanted = op.shape("input"), op.shape("index")
    dim: int = op.parameter("dim") % len(shape)
    element = element_of(value.type)
    has_32_bits = element_of(index.type) in (si32, ui32)
    is_last = dim == len(shape) - 1
    same = element == element_of(source.type) == element_of(op.result_type)
    rows = [wanted[axis] if axis == dim else size for axis, size in enumerate(shape)]
    if is_last and has_32_bits and same and op.shape("source") == wanted and rows == list(wanted):
        return None
    permutation = [axis for axis in range(len(shape)) if axis != dim] + [dim]
    source = builder.typecast(builder.slice(source, [0] * len(shape), wanted), element)
    index = index if has_32_bits else builder.typecast(index, si32)
    # Padding indices are out of range.
    source = _grown(builder, source, rows, 0.0)
    index = _grown(builder, index, rows, float(shape[dim]))
    moved = [builder.permute(each, permutation) for each in (value, index, source)]
    found = builder.emit(
        "scatter",
        moved,
        moved[0].type,
        dim=len(shape) - 1,
        scatter_reduce_type=op.parameter("scatter_reduce_type"),
    )
    inverse = [permutation.index(axis) for axis in range(len(shape))]
    return builder.typecast(builder.permute(found, inverse), element_of(op.result_type))


def _lower_scatter(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    value, index, source = (builder.operand(op, n) for n in ("input", "index", "source"))
    reduction = op.parameter("scatter_reduce_type").lower()
    shape = op.shape("input")
    dim = op.parameter("dim") % len(shape)
    source = builder.typecast(source, element_of(value.type))
    source = builder.slice(source, [0] * len(shape), op.shape("index"))
    if prod(op.shape("index")) == 0:
        return builder.typecast(value, element_of(op.result_type))
    if reduction in ("min", "max"):
        result = _extremes(builder, [value, index, source], dim, reduction)
    else:
        result = _scattered(builder, [value, index, source], dim, reduction)
    return builder.typecast(result, element_of(op.result_type))


def _scattered(
    builder: OpBuilder, operands: Sequence[SSAValue], dim: int, reduction: str
) -> SSAValue:
    """Emits the library's scatter; above rank 4 along the last dimension only
    (docs/library-rules.md).
    """
    rank = len(shape_of(operands[0].type))
    permutation = list(range(rank))
    if rank > 4:
        permutation[dim], permutation[-1] = rank - 1, dim
        dim = rank - 1
    operands = [builder.permute(operand, permutation) for operand in operands]
    result = builder.emit(
        "scatter", operands, operands[0].type, dim=dim, scatter_reduce_type=reduction
    )
    return builder.permute(result, permutation)


def _extremes(
    builder: OpBuilder, operands: Sequence[SSAValue], dim: int, reduction: str
) -> SSAValue:
    """Scatters minima or maxima, which the library's scatter does not support.

    Every position is compared with every index that could name it, (..., positions, indices); other
    candidates are neutral.
    """
    value, index, source = operands
    shape, wanted = shape_of(value.type), shape_of(index.type)
    element = element_of(value.type)
    data_type = declared_data_type(value)
    whole = not data_type.is_float
    computed = si32 if whole and data_type is not DataType.UINT32 else element
    permutation = [axis for axis in range(len(shape)) if axis != dim] + [dim]
    value, index, source = (builder.permute(v, permutation) for v in (value, index, source))
    permuted = list(shape_of(value.type))
    outer, places, count = permuted[:-1], shape[dim], wanted[dim]
    # Padding indices are out of range.
    index = _grown(builder, builder.typecast(index, f32), [*outer, count], float(places))
    source = _grown(builder, builder.typecast(source, computed), [*outer, count], 0)
    if len(outer) + 2 > MOST_BROADCAST_DIMS:
        outer = [prod(outer)]
        value = builder.reshape(value, [*outer, places])
    rank = len(outer) + 1
    named = builder.emit("arange", [], TensorType(f32, [places]), start=0, end=places)
    named = builder.reshape(named, [*[1] * len(outer), places, 1])
    index = builder.reshape(index, [*outer, 1, count])
    hits = builder.broadcasting("eq", index, named)
    source = builder.reshape(source, [*outer, 1, count])
    source = builder.repeat(source, [*outer, places, count])
    if whole:
        limits = np.iinfo(declared_data_type(source).numpy)
        least = int(limits.min if reduction == "max" else limits.max)
        neutral = builder.full([1] * (rank + 1), least, computed)
        candidates = builder.broadcasting("where", hits, source, neutral, element=computed)
        best = extreme_by_halves(builder, reduction, candidates, rank)
        best = builder.reshape(best, shape_of(value.type))
    else:
        infinite = float("-inf") if reduction == "max" else float("inf")
        candidates = builder.emit("where", [hits, source, None], source.type, false_value=infinite)
        best = builder.reduce(reduction, candidates, [rank], keep_dim=False)
    both = "maximum" if reduction == "max" else "minimum"
    result = builder.like(both, builder.typecast(value, computed), best)
    result = builder.reshape(builder.typecast(result, element), permuted)
    return builder.permute(result, [permutation.index(axis) for axis in range(len(shape))])


def _grown(builder: OpBuilder, value: SSAValue, shape: Sequence[int], fill: float) -> SSAValue:
    """Pads a value at the end of each dimension to that shape, by concatenation."""
    for axis, size in enumerate(shape):
        found = list(shape_of(value.type))
        if found[axis] < size:
            found[axis] = size - found[axis]
            block = builder.full(found, fill, element_of(value.type))
            value = builder.concat([value, block], axis)
    return value


_REDUCTION = attribute("scatter_reduce_type", ENUMERATOR, "invalid")
_SCATTER = (_DIM, _REDUCTION)

register(
    TTIRDefinition(
        "ttir.scatter",
        (
            operand("input"),
            operand("index", input_kind="index", places=_index_bound),
            operand("source"),
        ),
        (_OPTIONAL_DIM, _REDUCTION, *SCATTER_ATTRIBUTES),
        verify=_verify_scatter,
        numpy=_scatter,
        primitives=_scatter_primitives,
        decompose=lambda builder, op: (
            slices_by_index.decompose_scatter(builder, op) if is_general(op) else None
        ),
        lower=_lower_scatter,
        cpu=cpu_call("indexing", _scatter_on_cpu),
    )
)

# The library supports tiles too, but not of f32, and not with long rows.
SCATTERED = (
    DataType.BFLOAT16,
    DataType.FLOAT32,
    DataType.INT32,
    DataType.UINT32,
    DataType.UINT16,
)
_LIBRARY_REDUCTIONS = {"sum": "add", "prod": "multiply"}


def _verify_library_scatter(op: CatalogueOp) -> None:
    """Verifies that there is a source element for each index, and the result's shape."""
    _verify_elements(op)


def _cpp_scatter(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include(f"{MOVEMENT}/scatter/scatter.hpp")
    value, index, source = (calls[each] for each in op.operands)
    reduction = _LIBRARY_REDUCTIONS.get(op.parameter("scatter_reduce_type"))
    reduced = [] if reduction is None else [NULLOPT, Text(cpp_text(reduction))]
    dim = Text(str(op.parameter("dim")))
    calls.bind(op.results[0], calls.call("ttnn::scatter", value, dim, index, source, *reduced))


register(
    TTNNDefinition(
        "ttnn.scatter",
        (
            OperandSpec("input", layout=Layout.ROW_MAJOR, data_types=SCATTERED),
            OperandSpec(
                "index",
                layout=Layout.ROW_MAJOR,
                data_types=(DataType.UINT32, DataType.INT32, DataType.UINT16),
            ),
            OperandSpec("source", layout=Layout.ROW_MAJOR, data_types=SCATTERED),
        ),
        _SCATTER,
        verify=_verify_library_scatter,
        numpy=_scatter,
        result_rules=(ResultRule(layout=Layout.ROW_MAJOR),),
        cpp=_cpp_scatter,
        flops=no_flops,
    )
)
