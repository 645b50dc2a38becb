"""The general forms of gather and scatter against loops over StableHLO's definition of them."""

from __future__ import annotations

from itertools import product

import ml_dtypes  # registers bfloat16 with numpy
import numpy as np
import pytest

assert ml_dtypes is not None

RANDOM = np.random.default_rng(23)


def start_of(index, starts, batch, index_map, vector_dim, batching, along):
    """Start of the slice of the operand that the indices at `batch` name."""
    where = list(batch)
    where.insert(vector_dim, slice(None))
    if vector_dim == index.ndim:
        where = list(batch)
    parts = np.atleast_1d(index[tuple(where)])
    for part, dim in zip(parts, index_map, strict=True):
        starts[dim] = int(part)
    batch_dims = [dim for dim in range(index.ndim) if dim != vector_dim]
    for dim, other in zip(batching, along, strict=True):
        starts[dim] = batch[batch_dims.index(other)]
    return starts


def slices_shape(case, shape, index_shape, sizes, window_dims, removed):
    batch = [size for dim, size in enumerate(index_shape) if dim != case["vector_dim"]]
    kept = [size for dim, size in enumerate(sizes) if dim not in removed]
    batches, windows = iter(batch), iter(kept)
    return tuple(
        next(windows) if dim in window_dims else next(batches)
        for dim in range(len(batch) + len(kept))
    )


# shape, index shape, vector dim, index map, collapsed, batching, along, sizes, window dims
CASES = {
    "rows of a table": ((9, 5), (4, 1), 1, [0], [0], [], [], [1, 5], [1]),
    "long rows": ((9, 40), (2, 3), 2, [0], [0], [], [], [1, 40], [2]),
    "columns": ((4, 7), (3,), 1, [1], [1], [], [], [4, 1], [0]),
    "elements": ((3, 4, 5), (2, 6, 3), 2, [0, 1, 2], [0, 1, 2], [], [], [1, 1, 1], []),
    "parts in another order": ((3, 4), (2, 5), 0, [1, 0], [0, 1], [], [], [1, 1], []),
    "windows": ((6, 8, 3), (4, 2), 1, [0, 1], [], [], [], [2, 3, 3], [1, 2, 3]),
    "windows before batches": ((6, 8), (2, 3, 2), 2, [1, 0], [0], [], [], [1, 3], [0]),
    "part of what is not addressed": ((6, 8), (3, 1), 1, [0], [0], [], [], [1, 5], [1]),
    "along an axis": ((3, 4, 5), (3, 4, 2, 1), 3, [2], [2], [0, 1], [0, 1], [1, 1, 1], []),
    "batches in another order": ((3, 4, 5), (4, 2, 3, 1), 3, [2], [2], [0, 1], [2, 0], [1] * 3, []),
    "batches of rows": ((2, 5, 6), (2, 3, 1), 2, [1], [1], [0], [0], [1, 1, 6], [2]),
    "one slice": ((5, 6), (2,), 0, [0, 1], [], [], [], [2, 6], [0, 1]),
    "nothing to choose": ((1, 6), (3, 1), 1, [0], [0], [], [], [1, 6], [1]),
    "nothing addressed": ((4, 6), (3, 0), 1, [], [], [], [], [4, 6], [0, 2]),
    "only batches": ((4, 6), (4, 0), 1, [], [], [0], [0], [1, 6], [1]),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
@pytest.mark.parametrize("name", CASES)
def test_gather(evaluate, name, dtype):
    shape, index_shape, vector_dim, index_map, collapsed, batching, along, sizes, windows = CASES[
        name
    ]
    x = np.arange(np.prod(shape)).reshape(shape).astype(np.dtype(dtype))
    # Some indices are out of range: their slices are moved into the tensor.
    index = RANDOM.integers(-2, max(shape) + 2, size=index_shape).astype(np.int32)
    removed = [*collapsed, *batching]
    case = {"vector_dim": vector_dim}
    wanted = slices_shape(case, shape, index_shape, sizes, windows, removed)
    expected = np.zeros(wanted, dtype=x.dtype)
    for where in np.ndindex(wanted):
        batch = [i for dim, i in enumerate(where) if dim not in windows]
        offsets = iter([where[dim] for dim in windows])
        starts = start_of(index, [0] * x.ndim, batch, index_map, vector_dim, batching, along)
        for dim in index_map:
            starts[dim] = min(max(starts[dim], 0), shape[dim] - sizes[dim])
        place = [
            start if dim in removed else start + next(offsets) for dim, start in enumerate(starts)
        ]
        expected[where] = x[tuple(place)]
    ran = evaluate(
        "gather",
        [x, index],
        wanted,
        offset_dims=windows,
        collapsed_slice_dims=collapsed,
        operand_batching_dims=batching,
        start_indices_batching_dims=along,
        start_index_map=index_map,
        index_vector_dim=vector_dim,
        slice_sizes=sizes,
    )
    np.testing.assert_array_equal(ran.golden[0], expected)
    np.testing.assert_array_equal(ran.lowered[0], expected)
    assert ("ttnn.embedding" in ran.names) == (name == "long rows" and dtype == "bfloat16")


def combine(reduction, old, new):
    return {
        "sum": lambda: old + new,
        "prod": lambda: old * new,
        "min": lambda: min(old, new),
        "max": lambda: max(old, new),
    }.get(reduction, lambda: new)()


@pytest.mark.parametrize("reduction", ["invalid", "sum", "prod", "min", "max"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("name", CASES)
def test_scatter(evaluate, name, dtype, reduction):
    shape, index_shape, vector_dim, index_map, inserted, batching, along, sizes, windows = CASES[
        name
    ]
    x = RANDOM.integers(-3, 4, size=shape).astype(np.dtype(dtype))
    index = RANDOM.integers(-2, max(shape) + 2, size=index_shape).astype(np.int32)
    removed = [*inserted, *batching]
    case = {"vector_dim": vector_dim}
    wanted = slices_shape(case, shape, index_shape, sizes, windows, removed)
    update = RANDOM.integers(-3, 4, size=wanted).astype(np.dtype(dtype))
    if reduction == "invalid":
        # Which of two elements stays is not said.
        update[...] = 7
    expected = x.copy()
    for where in product(*map(range, wanted)):
        batch = [i for dim, i in enumerate(where) if dim not in windows]
        offsets = iter([where[dim] for dim in windows])
        starts = start_of(index, [0] * x.ndim, batch, index_map, vector_dim, batching, along)
        place = tuple(
            start if dim in removed else start + next(offsets) for dim, start in enumerate(starts)
        )
        # A slice of which a part is outside is left out, as XLA does it.
        extents = iter([wanted[dim] for dim in windows])
        lengths = [1 if dim in removed else next(extents) for dim in range(x.ndim)]
        ends = [start + length for start, length in zip(starts, lengths, strict=True)]
        if min(starts) >= 0 and all(e <= size for e, size in zip(ends, shape, strict=True)):
            expected[place] = combine(reduction, expected[place], update[where])
    ran = evaluate(
        "scatter",
        [x, index, update],
        shape,
        update_window_dims=windows,
        inserted_window_dims=inserted,
        input_batching_dims=batching,
        scatter_indices_batching_dims=along,
        scatter_dims_to_operand_dims=index_map,
        index_vector_dim=vector_dim,
        scatter_reduce_type=reduction,
    )
    np.testing.assert_array_equal(ran.golden[0], expected)
    np.testing.assert_array_equal(ran.lowered[0], expected)
    assert "ttnn.scatter" in ran.names or reduction in ("min", "max")
