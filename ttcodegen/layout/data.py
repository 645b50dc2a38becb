"""The data of a tensor in the memories of cores, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ttcodegen.layout.collapse import Shape, volume
from ttcodegen.layout.tensor_layout import TensorLayout, offset_in_tile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PADDING = {"zero": 0.0, "one": 1.0, "inf": float("inf"), "neginf": float("-inf"), "undef": 0.0}


def offsets(layout: TensorLayout) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each element of the tensor the number of its core, row by row in the grid, and its offset
    in the core's shard; both have the shape of the tensor."""
    import numpy as np

    places = [_place(layout, row) for row in layout.coefficients]
    core: Any = np.zeros((), np.int64)
    positions: list[Any] = []
    for place, part, side in zip(places, layout.shard_shape, layout.grid, strict=True):
        core = core * side + place // part
        positions.append(place % part)
    offset: Any = _offset(layout, positions)
    return (
        np.broadcast_to(core, layout.shape),
        np.broadcast_to(offset, layout.shape),
    )


def _place(layout: TensorLayout, row: Shape) -> Any:
    """The position in one collapsed dimension, with as many elements as dimensions are involved."""
    import numpy as np

    total: Any = np.zeros((1,) * len(layout.shape), np.int64)
    for dim, factor in enumerate(row):
        if factor:
            along = [1] * len(layout.shape)
            along[dim] = layout.shape[dim]
            total = total + factor * np.arange(layout.shape[dim], dtype=np.int64).reshape(along)
    return total


def _offset(layout: TensorLayout, positions: list[Any]) -> Any:
    if layout.tile is None:
        return _linear(positions, layout.shard_shape)
    rows, columns = layout.tile
    *outer, row, column = positions
    tile = _linear([*outer, row // rows, column // columns], layout.memref_shape)
    return tile * rows * columns + offset_in_tile(row % rows, column % columns, layout.tile)


def _linear(positions: list[Any], shape: Shape) -> Any:
    total: Any = 0
    for position, size in zip(positions, shape, strict=True):
        total = total * size + position
    return total


def to_shards(layout: TensorLayout, array: NDArray[Any]) -> NDArray[Any]:
    """The shards of a tensor: an array of the grid's shape and one dimension, which is the memory
    of a core. Padding holds what the layout says.

    Raises ValueError if the array has another shape than the tensor, or integers should hold
    infinity.
    """
    import numpy as np

    if array.shape != layout.shape:
        raise ValueError(f"the layout is for the shape {layout.shape}, not {array.shape}")
    fill = _PADDING[layout.out_of_bounds.value]
    if not np.isfinite(fill) and np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"there is no {layout.out_of_bounds.value} among integers")
    size = volume(layout.padded_shard_shape)
    shards = np.full((layout.cores, size), fill, array.dtype)
    core, offset = offsets(layout)
    shards[core, offset] = array
    return shards.reshape(*layout.grid, size)


def from_shards(layout: TensorLayout, shards: NDArray[Any]) -> NDArray[Any]:
    """The tensor whose shards these are; raises ValueError if they are of another size."""
    size = volume(layout.padded_shard_shape)
    if shards.shape != (*layout.grid, size):
        raise ValueError(f"the shards are {(*layout.grid, size)}, not {shards.shape}")
    core, offset = offsets(layout)
    return shards.reshape(layout.cores, size)[core, offset]
