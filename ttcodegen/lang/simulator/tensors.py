"""TT-NN tensors, of the size that programs of TT-Lang need, and their slices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.lang.simulator.context import KernelKind, running_kernel
from ttcodegen.lang.simulator.locations import error
from ttcodegen.lang.simulator.memory_configs import DRAM_MEMORY_CONFIG, MemoryConfig, placement
from ttcodegen.lang.simulator.shapes import Shape, is_integer, is_range, is_tuple, shape_text
from ttcodegen.numerics.rounding import in_storage_dtype, rounded_for_device

Array = np.ndarray


@dataclass(frozen=True)
class Tile:
    """The unit in which tiled tensors are stored."""

    tile_shape: tuple[int, int] = (TILE_SIDE, TILE_SIDE)


class TensorShape(tuple[int, ...]):
    """A shape: a tuple that also has a rank."""

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self)

    def __repr__(self) -> str:
        return f"Shape({list(self)})"


class Tensor:
    """A tensor of TT-NN.

    Attributes:
        layout: "tile" or "row_major".
        padded: its elements in float32 or integers; tiled ones have at least two dimensions, the
            last two of which are padded with zeros to whole tiles.
    """

    def __init__(
        self,
        elements: Array,
        data_type: DataType,
        layout: str,
        device: object = None,
        memory_config: MemoryConfig | None = None,
    ) -> None:
        self.data_type = data_type
        self.layout = layout
        self._shape = TensorShape(elements.shape)
        self._device = device
        self._memory_config = memory_config or DRAM_MEMORY_CONFIG
        if self._memory_config.is_sharded():
            # Raises what is wrong with its shards where it is made.
            _ = self.placement
        self.padded = _padded(rounded_for_device(elements, data_type), self.is_tiled)
        self._units: Shape = self.padded.shape
        if self.is_tiled:
            *outer, rows, columns = self.padded.shape
            self._units = (*outer, rows // TILE_SIDE, columns // TILE_SIDE)

    @property
    def is_tiled(self) -> bool:
        """True if its unit is a tile."""
        return self.layout == "tile"

    @property
    def compute_dtype(self) -> np.dtype[Any]:
        """The numpy dtype of its elements in the simulator."""
        return self.padded.dtype

    @property
    def shape(self) -> TensorShape:
        """Its logical shape."""
        return self._shape

    @property
    def padded_shape(self) -> TensorShape:
        """Its shape with the padding of its tiles."""
        return TensorShape(self.padded.shape)

    @property
    def dtype(self) -> DataType:
        """Its data type."""
        return self.data_type

    @property
    def tile(self) -> Tile:
        """The unit of tiled tensors."""
        return Tile()

    def get_layout(self) -> str:
        """Its layout."""
        return self.layout

    def device(self) -> object:
        """The device that it was made for, None if none was given."""
        return self._device

    def memory_config(self) -> MemoryConfig:
        """Its placement: interleaved in DRAM by default."""
        return self._memory_config

    @property
    def placement(self) -> TensorPlacement:
        """Its layout on the device."""
        return placement(
            self._shape, self.data_type, is_tiled=self.is_tiled, config=self._memory_config
        )

    def volume(self) -> int:
        """Number of elements."""
        return int(np.prod(self._shape, dtype=np.int64))

    @property
    def units(self) -> Shape:
        """Its size in units: tiles in the last two dimensions of tiled tensors."""
        return self._units

    @property
    def unit(self) -> str:
        """Unit of slice indices: tiles or elements."""
        return "tiles" if self.is_tiled else "elements"

    def elements(self) -> Array:
        """Its elements without padding, as they are computed with."""
        rank = len(self._shape)
        if not self.is_tiled:
            return self.padded.reshape(self._shape)
        shape = (1,) * (2 - rank) + self._shape
        return self.padded[tuple(slice(size) for size in shape)].reshape(self._shape)

    def stored(self) -> Array:
        """Its elements in the numpy dtype of its data type."""
        return in_storage_dtype(self.elements(), self.data_type)

    def __getitem__(self, index: Any) -> TensorSlice:
        running_kernel("a tensor slice", KernelKind.DATA_MOVEMENT)
        return slice_of(self, index if is_tuple(index) else (index,))

    def __repr__(self) -> str:
        return (
            f"ttnn.Tensor({self.stored()}, shape={self.shape}, dtype={self.data_type.name}, "
            f"layout={self.layout})"
        )


def _padded(elements: Array, is_tiled: bool) -> Array:
    if not is_tiled:
        return np.array(elements.reshape(elements.shape or (1,)))
    shape = (1,) * (2 - elements.ndim) + elements.shape
    sizes = (*shape[:-2], *(tiles_along(size) * TILE_SIDE for size in shape[-2:]))
    padded = np.zeros(sizes, elements.dtype)
    padded[tuple(slice(size) for size in shape)] = elements.reshape(shape)
    return padded


@dataclass(eq=False, slots=True)
class TensorSlice:
    """A part of a tensor: a start and a size in each dimension, in units; `single` says which
    dimensions the program gave a value for instead of a range."""

    tensor: Tensor
    starts: Shape
    sizes: Shape
    single: tuple[bool, ...]

    def has_shape(self, shape: Shape) -> bool:
        """True if a block of that shape fits: dimensions with a single value may be left out."""
        if shape == self.sizes:
            return True
        left = list(shape)
        for size, single in zip(self.sizes, self.single, strict=True):
            if left and left[0] == size and len(left) > 0:
                left.pop(0)
            elif not single:
                return False
        return not left

    def axes_of(self, shape: Shape) -> tuple[int, ...]:
        """The dimensions that those of a block of that shape correspond to; it fits."""
        left = list(shape)
        found: list[int] = []
        for axis, size in enumerate(self.sizes):
            if left and left[0] == size:
                found.append(axis)
                left.pop(0)
        return tuple(found)

    def view(self) -> Array:
        """The elements, in the memory of the tensor."""
        array = self.tensor.padded
        starts, sizes = self.starts, self.sizes
        if not self.tensor.is_tiled:
            ends = zip(starts, sizes, strict=True)
            return array[tuple([slice(start, start + size) for start, size in ends])]
        *outer, row, column = starts
        *_, rows, columns = sizes
        if outer:
            ends = zip(outer, sizes, strict=False)
            array = array[tuple([slice(start, start + size) for start, size in ends])]
        row, column = row * TILE_SIDE, column * TILE_SIDE
        return array[..., row : row + rows * TILE_SIDE, column : column + columns * TILE_SIDE]

    def __str__(self) -> str:
        return f"a slice of the shape {shape_text(self.sizes)}"


def wrong_indices(count: int, tensor: Tensor) -> str:
    """The error of a program that gives a slice another number of indices."""
    return (
        f"a slice has {count} indices, but the tensor has {len(tensor.units)} dimensions: "
        f"{shape_text(tensor.units)} in {tensor.unit}"
    )


def out_of_range(axis: int, first: int, end: int, size: int, unit: str) -> str:
    """The error of a program whose slice is not inside of the tensor."""
    return (
        f"dimension {axis} of a slice goes from {first} to {end}, but the tensor has {size} {unit} "
        "there"
    )


def slice_of(tensor: Tensor, index: tuple[Any, ...]) -> TensorSlice:
    """A slice, whose indices count units; raises ProgramError if it is not inside of the tensor."""
    units = tensor.units
    if len(index) != len(units):
        raise error(wrong_indices(len(index), tensor))
    starts: list[int] = []
    sizes: list[int] = []
    single: list[bool] = []
    for part, size in zip(index, units, strict=True):
        start, stop = _range(part, size, len(starts), tensor)
        starts.append(start)
        sizes.append(stop - start)
        single.append(not isinstance(part, slice))
    return TensorSlice(tensor, tuple(starts), tuple(sizes), tuple(single))


def ends_of(part: Any, size: int, is_number: Callable[[Any], bool]) -> tuple[Any, Any]:
    """The start of an index of a slice, and the stop of a range, None of a single value.

    Args:
        part: the index.
        size: of the tensor, in units.
        is_number: whether a value is an integer.

    Raises:
        ProgramError: if it is no index.
    """
    start, stop = part, None
    if is_range(part):
        start = 0 if part.start is None else part.start
        stop = size if part.stop is None else part.stop
        if part.step not in (None, 1):
            raise error(f"a slice has the step {part.step!r}; slices are contiguous")
    for each in (start,) if stop is None else (start, stop):
        if not is_number(each):
            raise error(
                f"an index of a tensor is an integer or a slice, not a {type(each).__name__}"
            )
    return start, stop


def _range(part: Any, size: int, axis: int, tensor: Tensor) -> tuple[int, int]:
    if type(part) is int and 0 <= part < size:
        return part, part + 1
    start, stop = ends_of(part, size, is_integer)
    first, end = int(start), int(start) + 1 if stop is None else int(stop)
    if not 0 <= first < end <= size:
        raise error(out_of_range(axis, first, end, size, tensor.unit))
    return first, end
