"""Gather and scatter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from xdsl.dialects.builtin import AnyFloat, Float32Type
from xdsl.ir import OpResult, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, i1, is_boolean, shape_of, tensor_type
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.frontends.stablehlo.bodies import block_of, is_subtraction, replacement
from ttcodegen.frontends.stablehlo.conversion import Conversion, Results, Rule, Value
from ttcodegen.frontends.stablehlo.movement import moving
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp
from ttcodegen.frontends.stablehlo.reductions import applied
from ttcodegen.frontends.translation import clamped_indices

_SCATTER_OF_GATHER = {
    "offset_dims": "update_window_dims",
    "collapsed_slice_dims": "inserted_window_dims",
    "operand_batching_dims": "input_batching_dims",
    "start_indices_batching_dims": "scatter_indices_batching_dims",
    "start_index_map": "scatter_dims_to_operand_dims",
}
"""Dimension attributes of a gather, with the corresponding ones of a scatter."""


def _gather(conversion: Conversion, op: StableHLOOp, values: Sequence[SSAValue]) -> SSAValue:
    value, indices = values[:2]
    numbers = op["dimension_numbers"]
    sizes = op.get("slice_sizes")
    if sizes is None and len(values) > 2:
        sizes = conversion.known(values[2])
    if sizes is None:
        raise ValueError("slices whose size is only known at run time are not supported")
    extents = [int(size) for size in sizes]
    dims = {name: [int(dim) for dim in numbers.get(name, [])] for name in _SCATTER_OF_GATHER}
    vector_dim = _vector_dim(numbers, indices)
    found = _static_slice(conversion, value, indices, dims, extents)
    if found is not None:
        return conversion.builder.reshape(found, shape_of(op.results[0].type))
    rows = _as_embedding(conversion, value, indices, dims, extents, vector_dim)
    if rows is not None:
        return rows
    is_sorted = bool(op.get("indices_are_sorted", False))
    shape = shape_of(op.results[0].type)
    return _emit_gather(conversion, value, indices, dims, extents, vector_dim, shape, is_sorted)


def _vector_dim(numbers: Mapping[str, Any], indices: SSAValue) -> int:
    """Dimension of the index vectors; the rank of the indices if each element is an index."""
    vector_dim, rank = int(numbers.get("index_vector_dim", 0)), len(shape_of(indices.type))
    if not 0 <= vector_dim <= rank:
        raise ValueError(f"index_vector_dim is 0 to {rank} for such indices, found {vector_dim}")
    return vector_dim


def _emit_gather(
    conversion: Conversion,
    value: SSAValue,
    indices: SSAValue,
    dims: dict[str, list[int]],
    sizes: list[int],
    vector_dim: int,
    shape: Sequence[int],
    is_sorted: bool = False,
) -> SSAValue:
    """Emits a gather to the given shape; booleans are gathered as numbers."""
    element = element_of(value.type)
    if is_boolean(element):
        value = conversion.builder.typecast(value, f32)
    made = conversion.builder.emit(
        "gather",
        [value, indices],
        tensor_type(element_of(value.type), shape),
        **dims,
        index_vector_dim=vector_dim,
        slice_sizes=sizes,
        indices_are_sorted=is_sorted,
    )
    return conversion.builder.typecast(made, element)


def _static_slice(
    conversion: Conversion,
    value: SSAValue,
    indices: SSAValue,
    dims: dict[str, list[int]],
    sizes: list[int],
) -> SSAValue | None:
    """Static slice for a gather of one slice at a known index, else None."""
    known = conversion.known(indices)
    if known is None or known.size != len(dims["start_index_map"]) or dims["operand_batching_dims"]:
        return None
    shape = shape_of(value.type)
    begins = [0] * len(shape)
    for axis, start in zip(dims["start_index_map"], known.flat, strict=True):
        begins[axis] = min(max(int(start), 0), shape[axis] - sizes[axis])
    ends = [begin + size for begin, size in zip(begins, sizes, strict=True)]
    return conversion.builder.slice(value, begins, ends)


def _as_embedding(
    conversion: Conversion,
    value: SSAValue,
    indices: SSAValue,
    dims: dict[str, list[int]],
    sizes: list[int],
    vector_dim: int,
) -> SSAValue | None:
    """Embedding for a gather of table rows, else None; row indices are not clamped."""
    shape, places = shape_of(value.type), shape_of(indices.type)
    batch = places
    if vector_dim < len(places):
        if places[vector_dim] != 1 or vector_dim != len(places) - 1:
            return None
        batch = places[:-1]
    is_rows = (
        len(shape) == 2
        and isinstance(element_of(value.type), AnyFloat)
        and dims["start_index_map"] == [0]
        and dims["collapsed_slice_dims"] == [0]
        and not dims["operand_batching_dims"]
        and sizes == [1, shape[1]]
        and dims["offset_dims"] == [len(batch)]
        and 1 <= len(batch) <= 2
    )
    if not is_rows:
        return None
    builder = conversion.builder
    indices = builder.reshape(indices, batch)
    known, last = conversion.known(indices), shape[0] - 1
    is_inside = known is not None and bool(np.all((known >= 0) & (known <= last)))
    if not is_inside:
        indices = clamped_indices(builder, indices, last)
    result = tensor_type(element_of(value.type), [*batch, shape[1]])
    if len(batch) == 1 and _is_small_matrix(value):
        places = builder.repeat(builder.reshape(indices, [*batch, 1]), shape_of(result))
        return builder.emit("gather", [value, places], result, dim=0)
    return builder.emit("embedding", [indices, value], result)


_LARGEST_MATRIX = 64
"""Limit on the rows and columns of matrices whose rows are gathered element by element."""


def _is_small_matrix(value: SSAValue) -> bool:
    """Returns whether a tensor is a small matrix of float32 that the program computes.

    Tables of embeddings are bfloat16 in the library; rows of a matrix that is permuted, as
    solutions of equations are, keep all bits.
    """
    return (
        isinstance(value, OpResult)
        and isinstance(element_of(value.type), Float32Type)
        and max(shape_of(value.type)) <= _LARGEST_MATRIX
    )


def _torch_index_select(
    conversion: Conversion, op: StableHLOOp, values: Sequence[SSAValue]
) -> SSAValue:
    """Gather of slices of size 1 along a dimension."""
    value, indices = values
    dim, batches = int(op.get("dim", 0)), int(op.get("batch_dims", 0))
    rank, count = len(shape_of(value.type)), len(shape_of(indices.type))
    sizes = [
        1 if axis == dim or axis < batches else size
        for axis, size in enumerate(shape_of(value.type))
    ]
    free = count - batches
    result = op.results[0].type
    offsets = [axis for axis in range(rank + count - 1 - batches) if axis < dim and axis >= batches]
    offsets += range(dim + free, rank + free - 1)
    return conversion.builder.emit(
        "gather",
        [value, indices],
        tensor_type(element_of(value.type), shape_of(result)),
        offset_dims=offsets,
        collapsed_slice_dims=[dim],
        operand_batching_dims=list(range(batches)),
        start_indices_batching_dims=list(range(batches)),
        start_index_map=[dim],
        index_vector_dim=count,
        slice_sizes=sizes,
    )


def _scatter_dims(op: StableHLOOp) -> dict[str, list[int]]:
    """Dimension attributes of a scatter."""
    numbers = op["scatter_dimension_numbers"]
    names = _SCATTER_OF_GATHER.values()
    return {name: [int(dim) for dim in numbers.get(name, [])] for name in names}


def _scatter(conversion: Conversion, op: StableHLOOp) -> Results:
    count = (len(op.operands) - 1) // 2
    operands = conversion.tensors(op)
    inputs, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    block = block_of(op)
    numbers = op["scatter_dimension_numbers"]
    dims = _scatter_dims(op)
    kind = replacement(block) if count == 1 else _replaces_all(conversion, op, count)
    if kind is None and is_subtraction(block):
        kind, updates = "sum", [conversion.builder.like("neg", updates[0])]
    if kind is None:
        kind, updates = "invalid", _scatter_by_gather(conversion, op, inputs, indices, updates)
    found: list[Value] = []
    for value, update in zip(inputs, updates, strict=True):
        element = element_of(value.type)
        builder = conversion.builder
        if is_boolean(element):
            value, update = builder.typecast(value, f32), builder.typecast(update, f32)
        made = builder.emit(
            "scatter",
            [value, indices, update],
            value.type,
            scatter_reduce_type=kind,
            **dims,
            index_vector_dim=_vector_dim(numbers, indices),
            indices_are_sorted=bool(op.get("indices_are_sorted", False)),
            unique_indices=bool(op.get("unique_indices", False)),
        )
        if is_boolean(element):
            zero = conversion.filled(0, shape_of(made.type), f32)
            made = builder.like("ne", made, zero, element=i1)
        found.append(made)
    return found


def _scatter_by_gather(
    conversion: Conversion,
    op: StableHLOOp,
    inputs: Sequence[SSAValue],
    indices: SSAValue,
    updates: Sequence[SSAValue],
) -> list[SSAValue]:
    """Scatter with an arbitrary body: gathers, combines and writes back.

    Raises:
        CompileError: if indices may repeat, as updates would not see each other, or if slices may
            exceed the tensor, as a gather clamps them.
    """
    dims = _scatter_dims(op)
    shape, window = shape_of(inputs[0].type), shape_of(updates[0].type)
    dropped = {*dims["inserted_window_dims"], *dims["input_batching_dims"]}
    kept = dims["update_window_dims"]
    if not dropped <= {*range(len(shape))} or len(kept) + len(dropped) != len(shape):
        raise ValueError(
            f"the window dimensions {kept} of the updates and the inserted or batching dimensions "
            f"{sorted(dropped)} are not those of an operand of rank {len(shape)}"
        )
    if not {*kept} <= {*range(len(window))}:
        raise ValueError(f"{kept} are no dimensions of updates of rank {len(window)}")
    sizes = iter(window[dim] for dim in kept)
    extents = [1 if axis in dropped else next(sizes) for axis in range(len(shape))]
    moved = dims["scatter_dims_to_operand_dims"]
    vector_dim = _vector_dim(op["scatter_dimension_numbers"], indices)
    if not op.get("unique_indices") and not _are_unique(conversion, indices, dims, vector_dim):
        raise CompileError(
            "'stablehlo.scatter': the body neither replaces the element nor adds, subtracts, "
            "multiplies or compares it, and indices may be named more than once",
            remedy="say that they are not (unique_indices), or use one of these",
        )
    if any(extents[axis] != 1 for axis in moved):
        raise CompileError(
            "'stablehlo.scatter': the body neither replaces the element nor adds, subtracts, "
            "multiplies or compares it, in slices of several elements",
            remedy="name the index of each element",
        )
    there = {name: dims[of_scatter] for name, of_scatter in _SCATTER_OF_GATHER.items()}
    present = [
        _emit_gather(conversion, value, indices, there, extents, vector_dim, window)
        for value in inputs
    ]
    return applied(conversion, block_of(op), [*present, *updates])


def _are_unique(
    conversion: Conversion, indices: SSAValue, dims: dict[str, list[int]], vector_dim: int
) -> bool:
    """Returns whether indices are known and unique."""
    shape = shape_of(indices.type)
    count = prod(shape) // max(len(dims["scatter_dims_to_operand_dims"]), 1)
    if count <= 1:
        return True
    known = conversion.known(indices)
    if known is None or dims["input_batching_dims"]:
        return False
    if vector_dim == len(shape):
        known = known[..., np.newaxis]
    places = np.moveaxis(known, vector_dim, -1).reshape(count, -1)
    return len(np.unique(places, axis=0)) == count


def _replaces_all(conversion: Conversion, op: StableHLOOp, count: int) -> str | None:
    block = block_of(op)
    last = block.last_op
    if last is not None and list(last.operands) == list(block.args[count:]):
        return "invalid"
    return None


RULES: dict[str, Rule] = {
    "dynamic_gather": moving(_gather),
    "gather": moving(_gather),
    "scatter": _scatter,
    "torch_index_select": moving(_torch_index_select),
}
